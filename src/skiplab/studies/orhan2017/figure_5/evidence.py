"""What three-layer linear networks show: who learns first, whether equations are descent, what is orthogonal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2017.figure_5.terms import initial_velocity, singular_sets, terms
from skiplab.studies.orhan2017.figure_5.trials import (
    EXACT_ONES,
    FOLLOWED,
    MODES,
    NAMES,
    ONES,
    ONES_MODES,
    ORTHONORMAL,
    SMALL,
    agreement,
    descents,
)

if TYPE_CHECKING:
    import numpy as np

    from skiplab.reproduction.trial import Trial


def values(results: Results, trial: Trial, quantity: str, **where: str) -> np.ndarray:
    """One number per run, in the order of the runs."""
    return results.sample(trial, by="run", quantity=quantity, **where)


def steps_of(results: Results, start: str, network: str, dynamics: str = "corrected") -> np.ndarray:
    """The steps that every run took to learn; NaN if it never did."""
    return values(results, descents, "steps", start=start, network=network, dynamics=dynamics)


def path(
    results: Results, start: str, network: str, quantity: str, dynamics: str = "corrected"
) -> tuple[np.ndarray, np.ndarray]:
    """Steps and a quantity of the first run's descent at them."""
    where = {"start": start, "network": network, "dynamics": dynamics, "quantity": quantity}
    rows = results.rows(descents, **where).sort_values("x")
    return rows["x"].to_numpy(), rows["value"].to_numpy()


def faster(results: Results) -> Iterator[Evidence]:
    """log₁₀ of the plain network's steps over the residual one's, from the same draw."""
    import numpy as np

    plain, small = (steps_of(results, SMALL, network) for network in ("plain", "residual"))
    detail = f"steps: plain {_mean(plain):.4g}, residual {_mean(small):.4g}"
    yield Evidence(f"(a) {NAMES[SMALL]}", [np.log10(plain / small).tolist()], detail=detail)
    residual = steps_of(results, MODES, "residual")
    for start in (ONES, ONES_MODES, ORTHONORMAL, MODES):
        plain, printed = (steps_of(results, start, "plain", which) for which in ("corrected", "printed"))
        detail = f"steps: plain {_mean(plain):.4g}, residual {_mean(residual):.4g}"
        detail += f"; as printed, plain {_mean(printed):.4g}"
        if start == ONES:
            last = path(results, EXACT_ONES, "plain", "loss")[1][-1]
            detail += f"; without noise mode 2 is never learned and the loss stays at {last:.4g}"
        gap = np.log10(plain / residual).tolist()
        headline = start in (ONES, ONES_MODES)
        yield Evidence(f"(b) plain {NAMES[start]}", [gap], headline=headline, detail=detail)


def starts_faster(results: Results) -> Iterator[Evidence]:
    """log₁₀ of the residual network's velocity at small random weights over the plain one's."""
    import numpy as np

    residual, plain = (
        values(results, initial_velocity, "velocity", network=network) for network in ("residual", "plain")
    )
    detail = f"medians {np.median(residual):.3g} and {np.median(plain):.3g}"
    yield Evidence(f"(a) {NAMES[SMALL]}", [np.log10(residual / plain).tolist()], detail=detail)


def _mean(steps: np.ndarray) -> float:
    """The mean over those runs that learned."""
    learned = steps[steps == steps]  # NaN is no number of steps
    return float(learned.mean()) if len(learned) else float("nan")


def agrees(
    dynamics: str, *, starts: Sequence[str] | None = None, networks: Sequence[str] | None = None
) -> Found:
    """Evidence of how far the flow is from gradient descent with a vanishing step.

    Judged from some starts or all, of some networks or all.

    From nearly symmetric starts the printed equations are off by as little as the rounding allows.
    """

    def found(results: Results) -> Iterator[Evidence]:
        for network, start, until in FOLLOWED:
            where = {"start": start, "network": network}
            apart = values(results, agreement, "apart", dynamics=dynamics, **where)
            unsettled = values(results, agreement, "unsettled", **where)
            detail = f"to t = {until:g}; the last halving of the step changed {unsettled.max():.1g}"
            headline = (starts is None or start in starts) and (networks is None or network in networks)
            yield Evidence(f"{network}, {NAMES[start]}", [apart.tolist()], headline=headline, detail=detail)

    return found


def orthogonal(results: Results) -> Iterator[Evidence]:
    """The largest |cosine| between cooperation and competition, one number per task."""
    plain = values(results, terms, "cosine", start="random", network="plain")
    said = {
        "zero": f"plain from random weights: {plain.mean():.2f}",
        "small": "close to orthogonal, as the paper allows",
        "zero, while learning, u = v": "competition is zero",
    }
    for start, rows in results.rows(terms, network="residual").groupby("start", sort=False):
        detail = said.get(str(start), "")
        sample = rows["value"].tolist()
        yield Evidence(f"residual at {start}", [sample], headline=start == "zero", detail=detail)


def stays(*sets: str) -> Found:
    """Evidence of how far the plain network's flow gets from sets on which it starts."""

    def found(results: Results) -> Iterator[Evidence]:
        for name in sets:
            plain, residual = (
                values(results, singular_sets, "distance", start=name, network=network)
                for network in ("plain", "residual")
            )
            detail = f"residual leaves it by {residual.min():.2g} or more"
            yield Evidence(name, [plain.tolist()], detail=detail)

    return found


def oriented(results: Results) -> Iterator[Evidence]:
    """How far a plain network that starts along the modes is from a residual one that starts at zero."""
    apart = values(results, descents, "apart")
    yield Evidence("plain a = v, b = u; residual zero", [apart.tolist()])
