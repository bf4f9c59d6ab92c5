"""What single modes of deep linear networks show: where their saddles are, and which skips learn first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from skiplab.reproduction import NOT_SAID, Evidence, Results
from skiplab.studies.orhan2017.figure_6.trials import (
    NETWORKS,
    PRINTED_LABELS,
    PRINTED_SADDLES,
    matrices,
    race,
    saddles,
)

if TYPE_CHECKING:
    import numpy as np

HYPER, DENSE = "hyper-residual", "dense-residual"
# At the origin of three layers u̇ is 2(s − 1) in residual networks and 5(s − 2) in hyper-residual ones; between
# these s the residual network's is larger.
U_FASTER = (12 / 7, 8 / 3)


class Contest(NamedTuple):
    """One race: how many weight matrices, how spread the starts, which singular value."""

    layers: int
    spread: float
    s: float


def judged(results: Results) -> Contest:
    """The race that the headline verdicts are about."""
    settings = results.settings
    return Contest(settings.layers - 1, settings.spreads[0], settings.s)


def raced(results: Results, quantity: str, network: str, contest: Contest | None = None) -> np.ndarray:
    """One number per run of a race, in the order of the runs; of the race that is judged unless another is given."""
    where = (contest or judged(results))._asdict()
    return results.sample(race, by="run", quantity=quantity, network=network, **where)


def saddle_points(results: Results) -> Iterator[Evidence]:
    """How far saddles are from the printed places, one number per task."""
    for network in NETWORKS:
        wide = results.rows(saddles, network=network).pivot(index="run", columns="quantity", values="value")
        # A wrong place and a wrong kind of point both count, and so does a task in which none was found.
        off = wide["from printed"] + wide["not a saddle"] + (wide["found"] == 0)
        a, b = PRINTED_SADDLES[network]
        place = f"({a:g}, {b:g})".replace("-", "−")
        detail = f"Newton's method ended in it from {int(wide['found'].sum())} random points"
        name = f"{network} at {place}"
        if network == HYPER:
            name = f"{network} by eq 7 at {place}"
        if network == DENSE:
            name, detail = f"true dense skips at {place}", "they have it at (−1, −1)"
        yield Evidence(name, [off.tolist()], headline=network not in (HYPER, DENSE), detail=detail)


def true_skips(results: Results) -> Iterator[Evidence]:
    """The answer u of networks with true dense skips at small weights over that of eq 7, less 1."""
    true, printed = (raced(results, "initial answer", network) for network in (DENSE, HYPER))
    detail = f"u starts at {true.mean():.4g}, by eq 7 at {printed.mean():.4g}"
    yield Evidence(f"{results.settings.layers} layers", [(true / printed - 1).tolist()], detail=detail)


def order(results: Results) -> Iterator[Evidence]:
    """log₁₀ of the slower network's time over the faster one's, one number per start."""
    import numpy as np

    deep = judged(results)
    shallow = deep._replace(layers=2)
    races = [(deep._replace(spread=spread), "time") for spread in results.settings.spreads]
    races += [(shallow, "time"), (deep, "steps"), (shallow, "steps")]
    for contest, quantity in dict.fromkeys(races):
        times = {network: raced(results, quantity, network, contest) for network in NETWORKS}
        what = "" if quantity == "time" else ", time × sharpest curvature"
        headline = (contest, quantity) == (deep, "time")
        for slow, fast in (("plain", "residual"), ("residual", "hyper-residual"), ("residual", DENSE)):
            detail = f"medians {np.median(times[slow]):.3g} and {np.median(times[fast]):.3g}"
            name = "true dense skips" if fast == DENSE else fast
            condition = f"{slow} − {name}, {contest.layers + 1} layers, spread {contest.spread:g}{what}"
            gap = np.log10(times[slow] / times[fast]).tolist()
            yield Evidence(condition, [gap], headline=headline and fast != DENSE, detail=detail)


def speed(results: Results) -> Iterator[Evidence]:
    """log₁₀ of the speed at the start with skips over that without, three layers, one number per start."""
    for s in (results.settings.s, *results.settings.others):
        for fast in ("residual", "hyper-residual"):
            yield _at_the_origin(results, fast, "plain", s)


def hyper_speed(results: Results) -> Iterator[Evidence]:
    """The same of hyper-residual over residual skips: its sign depends on s, which the paper does not name.

    At our default, s = 3, it depends on what is to be fast, too: the weights, as in the phase portraits, or their
    product u, as in figure 6b. So no row is judged.
    """
    low, high = _residual_faster()
    silent = (
        f"the paper names neither s nor whose speed it means: weights are faster for s below {low:.2f} or above "
        f"{high:.2f}, their product u below {U_FASTER[0]:.2f} or above {U_FASTER[1]:.2f}, and not between"
    )
    yield Evidence.without("the paper's s and speed", NOT_SAID, silent)
    for s in (results.settings.s, *results.settings.others):
        row = _at_the_origin(results, "hyper-residual", "residual", s)
        yield replace(row, condition=f"weights, {row.condition}", headline=False)
        yield _learned(results, s)


def _learned(results: Results, s: float) -> Evidence:
    """log₁₀ of the residual network's time until learned over the hyper-residual one's, from the origin."""
    import numpy as np

    contest = Contest(2, results.settings.spreads[0], s)
    slow, fast = (raced(results, "time", network, contest) for network in ("residual", HYPER))
    detail = f"medians {np.median(slow):.3g} and {np.median(fast):.3g}"
    name = f"time until learned, residual over {HYPER}, s = {s:g}"
    return Evidence(name, [np.log10(slow / fast).tolist()], headline=False, detail=detail)


def _at_the_origin(results: Results, fast: str, slow: str, s: float) -> Evidence:
    import numpy as np

    contest = Contest(2, results.settings.spreads[0], s)
    ahead, behind = (raced(results, "initial speed", network, contest) for network in (fast, slow))
    detail = f"means {ahead.mean():.3g} and {behind.mean():.3g}"
    return Evidence(f"{fast} over {slow}, s = {s:g}", [np.log10(ahead / behind).tolist()], detail=detail)


def _residual_faster() -> tuple[float, float]:
    """Between which s residual modes are faster at the origin than hyper-residual ones.

    The speeds are √2|s − 1| and √5|s − 2|, which are equal at (2√5 + √2)/(√5 + √2) and at (2√5 − √2)/(√5 − √2).
    """
    root2, root5 = 2**0.5, 5**0.5
    low, high = ((2 * root5 + sign * root2) / (root5 + sign * root2) for sign in (1, -1))
    return low, high


def deeper(results: Results) -> Iterator[Evidence]:
    """By how much more the faster network wins in deep networks than in three layers, in powers of ten."""
    import numpy as np

    deep = judged(results)
    shallow = deep._replace(layers=2)
    for slow, fast in (("plain", "residual"), ("residual", "hyper-residual")):
        gaps = [
            np.log10(raced(results, "time", slow, contest) / raced(results, "time", fast, contest))
            for contest in (deep, shallow)
        ]
        detail = f"medians {np.median(gaps[0]):.3g} and {np.median(gaps[1]):.3g} powers of ten"
        condition = f"{slow} over {fast}, {deep.layers + 1} against 3 layers"
        yield Evidence(condition, gaps, detail=detail, paired=True)


def interval_of_s(results: Results) -> Iterator[Evidence]:
    """Starts at which residual modes are faster than hyper-residual ones, but for s inside the interval, or not."""
    settings, (low, high) = results.settings, _residual_faster()
    for s in (settings.s, *settings.others):
        contest = Contest(2, settings.spreads[0], s)
        residual, hyper = (
            raced(results, "initial speed", network, contest) for network in ("residual", "hyper-residual")
        )
        wrong = (residual > hyper) != (low < s < high)
        yield Evidence(f"s = {s:g}", [wrong.astype(float)], detail=f"between {low:.2f} and {high:.2f}")


def gradients(results: Results) -> Iterator[Evidence]:
    """How far eqs 21–23 are from the gradients of real networks, labels corrected and (further rows) as printed.

    Eq 23 is that of eq 7, which no network with dense skips computes: a further row, as are true dense skips.
    """
    for network in NETWORKS:
        headline = network not in (HYPER, DENSE)
        yield Evidence(network, [_of_matrices(results, network, "gradient")], headline=headline)
        if network in PRINTED_LABELS:
            printed = _of_matrices(results, network, "gradient, printed label")
            yield Evidence(f"{network}, labels as printed", [printed], headline=False)


def _of_matrices(results: Results, network: str, quantity: str) -> list[float]:
    found: list[float] = results.sample(matrices, by="run", network=network, quantity=quantity).tolist()
    return found


def far_above(results: Results) -> Iterator[Evidence]:
    """The hyper-residual answer at the start over the factorial, less 1."""
    settings = results.settings
    start = math.factorial(settings.layers - 1)
    u = raced(results, "initial answer", "hyper-residual")
    detail = f"{settings.layers - 1}! = {start:,}; s = {settings.s:g}"
    yield Evidence(f"{settings.layers} layers", [(u / start - 1).tolist()], detail=detail)


def moved_starts(results: Results) -> Iterator[Evidence]:
    """How much longer plain modes take that start where the skip would have put them."""
    for network in ("residual", "hyper-residual"):
        yield Evidence(network, [raced(results, "moved start", network).tolist()])


def solver(results: Results) -> Iterator[Evidence]:
    """How far the solver's times are from the exact integral's."""
    for network in NETWORKS[:3]:
        yield Evidence(network, [raced(results, "time from quadrature", network).tolist()])
