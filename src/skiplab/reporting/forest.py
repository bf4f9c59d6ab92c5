"""A claim's interval as a small drawing: where it holds, our estimate, and how sure we are.

The drawing is inline SVG coloured by the page's style sheet, so it follows the dark and light themes. It
reads the stored verdict only: its kind knows the region and what else to mark.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from skiplab.data.registry import with_titles
from skiplab.reproduction import numerals
from skiplab.reproduction.kinds.base import Region
from skiplab.reproduction.verdict import Verdict

WIDTH, HEIGHT, MIDDLE = 200.0, 28.0, 14.0
NO_MARKS = Markup("")


def domain_of(verdicts: Sequence[Verdict]) -> Region | None:
    """Return the range that shows every interval and every finite end of a region, or None for no number."""
    points = [
        point
        for verdict in verdicts
        for point in (verdict.statistic, verdict.low, verdict.high, *verdict.region, verdict.refuted_below)
        if point is not None and math.isfinite(point)
    ]
    if not any(verdict.statistic is not None for verdict in verdicts) or min(points) == max(points):
        return None
    pad = 0.12 * (max(points) - min(points))
    return min(points) - pad, max(points) + pad


def spoken(verdict: Verdict) -> str:
    """Say what the drawing shows, for readers who do not see it."""
    low, high = verdict.region
    if math.isfinite(low) and math.isfinite(high):
        where = f"between {numerals.limit(low)} and {numerals.limit(high)}"
    else:
        where = f"above {numerals.limit(low)}"
    extent = numerals.interval(verdict.low, verdict.high) if _has_interval(verdict) else "not known"
    return f"Ours {numerals.number(verdict.statistic)}, interval {extent}; the claim holds {where}."


def draw(verdict: Verdict, domain: Region | None) -> Markup:
    """Draw one verdict on a given range, or nothing where there is no number to draw."""
    if domain is None or verdict.statistic is None:
        return Markup("")
    parts = []
    if verdict.worth is not None:
        x = _placed(verdict.refuted_below, domain)
        parts.append(f'<line class="worth" x1="{x}" x2="{x}" y1="3" y2="25"/>')
    parts += [
        f'<path class="paper" d="M{_placed(mark, domain)} 1 l3.5 -0 l-3.5 5 l-3.5 -5 z"/>'
        for mark in verdict.meaning.marks(verdict)
    ]
    ends = (verdict.low, verdict.high) if _has_interval(verdict) else None
    marks = Markup("".join(parts))
    return interval_drawing(
        verdict.verdict, spoken(verdict), domain, verdict.region, verdict.statistic, ends, marks
    )


def interval_drawing(
    kind: str,
    label: str,
    domain: Region,
    region: Region,
    statistic: float,
    ends: tuple[float | None, float | None] | None,
    marks: Markup = NO_MARKS,
) -> Markup:
    """Draw a region, a number and its interval on one range; an end of the interval that is None is open.

    ``kind`` is a class of the style sheet, ``label`` says what is shown, ``marks`` lie between region and interval.
    """
    left, right = _placed(region[0], domain), _placed(region[1], domain)
    below = [f'<rect class="region" x="{left}" y="3" width="{round(right - left, 2)}" height="22"/>']
    below += [
        f'<line class="threshold" x1="{x}" x2="{x}" y1="1" y2="27"/>'
        for end, x in zip(region, (left, right), strict=True)
        if math.isfinite(end)
    ]
    above = []
    if ends is not None:
        low, high = ends
        start, stop = (
            0.0 if low is None else _placed(low, domain),
            WIDTH if high is None else _placed(high, domain),
        )
        above.append(f'<line class="interval" x1="{start}" x2="{stop}" y1="{MIDDLE}" y2="{MIDDLE}"/>')
        for x, end, turn in ((start, low, 1), (stop, high, -1)):
            # An open end is an arrow, a closed one a cap.
            shape = f"M{x + 5 * turn} 9.5 L{x} 14 L{x + 5 * turn} 18.5" if end is None else f"M{x} 10 V18"
            above.append(f'<path class="interval" d="{shape}"/>')
    above.append(f'<circle class="estimate" cx="{_placed(statistic, domain)}" cy="{MIDDLE}" r="3.6"/>')
    opening = Markup(
        '<svg class="forest {kind}" viewBox="0 0 {width:g} {height:g}" role="img" aria-label="{label}">'
    ).format(kind=kind, width=WIDTH, height=HEIGHT, label=label)
    return opening + Markup("".join(below)) + marks + Markup("".join(above) + "</svg>")


def _placed(value: float, domain: Region) -> float:
    """Where a value lies from the left of a drawing, at its edge if it is outside."""
    share = (value - domain[0]) / (domain[1] - domain[0])
    return round(min(max(share, 0.0), 1.0) * WIDTH, 2)


def strip(verdicts: Sequence[Verdict]) -> Markup:
    """Draw the statistic of many conditions side by side, each with its interval; nothing without a number.

    The conditions stand in their order from left to right, each named by a title that a pointer shows.
    """
    known = [each for each in verdicts if each.statistic is not None]
    domain = domain_of(known)
    if domain is None:
        return Markup("")
    height, step = 64.0, 12.0
    width = step * (len(known) + 1)

    def place(value: float) -> float:
        share = (value - domain[0]) / (domain[1] - domain[0])
        return round((1 - min(max(share, 0.0), 1.0)) * height, 2)

    low, high = known[0].region
    parts = []
    # Conditions may have regions of their own, such as one around each of a paper's values.
    if len({each.region for each in known}) == 1:
        parts.append(
            f'<rect class="region" x="0" y="{place(high)}" width="{width:g}" height="{place(low) - place(high):g}"/>'
        )
    pieces = [Markup("").join(map(Markup, parts))]
    for index, each in enumerate(known, 1):
        x, (bottom, top) = step * index, (each.low, each.high)
        bar = ""
        if _has_interval(each):
            ends = height if bottom is None else place(bottom), 0.0 if top is None else place(top)
            bar = f'<line class="interval" x1="{x:g}" x2="{x:g}" y1="{ends[0]}" y2="{ends[1]}"/>'
        assert each.statistic is not None
        dot = f'<circle class="estimate" cx="{x:g}" cy="{place(each.statistic)}" r="3"/>'
        title = Markup("<title>{}: {} ({})</title>").format(
            with_titles(each.condition), numerals.number(each.statistic), numerals.interval(bottom, top)
        )
        pieces.append(Markup("<g>") + title + Markup(bar + dot + "</g>"))
    opening = Markup(
        '<svg class="strip" viewBox="0 0 {width:g} {height:g}" width="{width:g}" role="img" aria-label="{label}">'
    ).format(width=width, height=height, label=f"The statistic in {len(known)} further conditions")
    return opening + Markup("").join(pieces) + Markup("</svg>")


def _has_interval(verdict: Verdict) -> bool:
    tested = verdict.p is not None
    return verdict.statistic is not None and (tested or None not in (verdict.low, verdict.high))
