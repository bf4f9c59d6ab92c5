"""Training losses epoch by epoch, and the gap between plain and residual networks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from skiplab.reproduction import NOT_RUN, Evidence, Results
from skiplab.reproduction.results import matching
from skiplab.studies.yu2019.networks import train
from skiplab.studies.yu2019.pairs import (
    LEFT_OUT,
    NOT_HERE,
    PLAIN,
    RESIDUAL,
    is_papers,
    left_out,
    logs,
    printed,
    same_seeds,
    waiting,
    without_depths,
)

if TYPE_CHECKING:
    import numpy as np

# The means of ten runs that figure 9 (a) is marked with.
MEANS = {PLAIN: {32: 0.13, 44: 0.46}, RESIDUAL: {32: 0.055, 44: 0.083}}
PEAK = 15
WINDOW = 5  # epochs over which the gap is averaged before its widest place is looked for


def curves(results: Results, model: str, depth: int, stage: str = "train_pairs") -> np.ndarray:
    """L (networks, epochs) of one model and depth, networks in the order of seeds."""
    import numpy as np

    rows = results.rows(train, stage=stage)
    rows = matching(rows, model=model, depth=depth, quantity="loss")
    if not len(rows):
        return np.empty((0, 0))
    return rows.pivot_table(index="seed", columns="epoch", values="value", dropna=False).to_numpy()


def gap(results: Results, depth: int) -> np.ndarray:
    """L of plain less that of residual networks (pairs, epochs)."""
    return curves(results, PLAIN, depth) - curves(results, RESIDUAL, depth)


def ahead(results: Results) -> Iterator[Evidence]:
    """ln L of plain and of residual networks at some epochs, by depth."""
    for depth in sorted(results.settings.depths):
        for epoch in results.settings.at:
            pair = logs(results, depth, epoch=epoch)
            yield Evidence(f"{depth} layers, epoch {epoch}", pair, paired=True)
    for epoch in results.settings.at:
        yield from without_depths(results, f"{{depth}} layers, epoch {epoch}")


def printed_means(results: Results) -> Iterator[Evidence]:
    """L of the last epoch."""
    for words, number, sample, detail in printed(results, MEANS, "loss"):
        yield waiting(Evidence(words, [sample], paper_value=number, detail=detail))


def gap_peaks(results: Results) -> Iterator[Evidence]:
    """The middle of the five epochs over which a pair's mean gap is widest; in words how much wider than at first."""
    import numpy as np

    settings, whole = results.settings, is_papers(results.settings)
    for depth in sorted(settings.depths):
        found = gap(results, depth)
        wider = found[:, settings.wide_at - 1] - found[:, 0]
        detail = (
            f"wider after {settings.wide_at} epochs than after one by {wider.mean():.3g}, in "
            f"{int((wider > 0).sum())} of {len(wider)} pairs"
        )
        sample = peaks(found) if whole else np.empty(0)
        row = Evidence(f"{depth} layers", [sample], paper_value=float(PEAK), detail=detail if whole else "")
        yield waiting(row)
    for row in without_depths(results, samples=1):
        yield replace(row, paper_value=float(PEAK))


def peaks(gaps: np.ndarray) -> np.ndarray:
    """The epoch (counted from 1) around which the running mean of each row is largest."""
    import numpy as np

    means = np.lib.stride_tricks.sliding_window_view(gaps, WINDOW, axis=1).mean(-1)
    return np.asarray(means.argmax(1) + 1.0 + WINDOW // 2)


def deeper_slower(results: Results) -> Iterator[Evidence]:
    """ln L of the deepest plain networks and of those before them at one rate, the mean over the first epochs.

    Where the deepest are left out, which the sentence is about, the depths that are there are further rows.
    """
    import numpy as np

    settings = results.settings
    start, end = sorted(settings.depths)[-2:]
    for depth in left_out(settings):
        words = f"{end} → {depth} layers, rate {settings.slow_rate:g}, epochs 1 to {settings.wide_at}"
        yield Evidence.without(words, NOT_RUN, LEFT_OUT, 2)
    slow = end >= settings.slow_depth > start
    at_paper_rates = [np.log(curves(results, PLAIN, depth)) for depth in (end, start)]
    first = at_paper_rates[1]
    if slow:
        first = np.log(curves(results, PLAIN, start, "slow_start"))
    pair = same_seeds(at_paper_rates[0], first)
    early = slice(0, settings.wide_at)
    words = f"{start} → {end} layers, rate {settings.rate_of(PLAIN, end):g}"
    means = [each[:, early].mean(1) for each in pair]
    whole = is_papers(settings)
    found = Evidence(
        f"{words}, epochs 1 to {settings.wide_at}",
        means if whole else [(), ()],
        headline=not left_out(settings),
        detail="" if whole else f"{NOT_HERE}; {means[0].mean():.3g} and {means[1].mean():.3g} here",
        paired=True,
    )
    yield waiting(found)
    for epoch in sorted({1, settings.wide_at}):
        one = [each[:, epoch - 1] for each in pair]
        yield Evidence(f"{words}, epoch {epoch}", one, headline=False, paired=True)
    if slow:
        unequal = [each[:, early].mean(1) for each in same_seeds(*at_paper_rates)]
        yield Evidence(f"{start} → {end} layers, the paper's rates", unequal, headline=False, paired=True)
