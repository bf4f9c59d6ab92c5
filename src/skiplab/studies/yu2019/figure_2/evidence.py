"""Who reaches a training risk first, and the test error there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import NOT_RUN, Evidence, Results
from skiplab.studies.yu2019.equal_risk import curves, epochs_to, error_at, smoothed
from skiplab.studies.yu2019.networks import train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL

if TYPE_CHECKING:
    import numpy as np

LOW = 2e-3  # the risk that the paper names
PAPER_EPOCHS = 1200
LONG, BARE, DROPPED = "train_long", "train_bare", "train_dropped"  # the study's stages
STAGES = {LONG: "", BARE: ", no crops or flips", DROPPED: ", the rate lowered as in table 1"}
NOT_HERE = "not trained here at a constant rate"


def present(results: Results) -> list[str]:
    """The stages of which there are networks."""
    return [stage for stage in STAGES if len(results.rows(train, stage=stage))]


def curve(results: Results, model: str, quantity: str, stage: str = LONG) -> np.ndarray:
    """Training risk ("loss") or "test_error" of every network, (networks, epochs), from the first epoch on."""
    return curves(results.rows(train, stage=stage, model=model), quantity)


def reached(results: Results, level: float, stage: str = LONG) -> list[np.ndarray]:
    """When plain and residual networks first reach a risk as a mean over five epochs; NaN if they never do."""
    return [epochs_to(smoothed(curve(results, model, "loss", stage)), level) for model in (PLAIN, RESIDUAL)]


def errors_at(results: Results, model: str, level: float, stage: str = LONG) -> np.ndarray:
    """The test error of each network where it first reaches a risk; NaN if it never does."""
    risk, error = (curve(results, model, quantity, stage) for quantity in ("loss", "test_error"))
    return error_at(risk, error, level)


def lowest(results: Results, stage: str = LONG) -> float:
    """The lowest of the risks that all networks of both kinds reach, or the highest if there is none."""
    import numpy as np

    levels = sorted(results.settings.risks)
    by_all = [level for level in levels if np.isfinite(np.concatenate(reached(results, level, stage))).all()]
    return float(by_all[0] if by_all else levels[-1])


def reached_by_any(results: Results, stage: str) -> list[float]:
    """The risks that some network of a stage reaches, the highest first."""
    import numpy as np

    risks = sorted(results.settings.risks, reverse=True)
    return [level for level in risks if np.isfinite(np.concatenate(reached(results, level, stage))).any()]


def _levels(results: Results) -> Iterator[tuple[str, float, str, bool]]:
    """Every stage and risk: the words of its row, the risk, the stage, and whether it is the headline.

    A further row at a risk that no network reaches would compare nothing.
    """
    for stage in present(results):
        low = lowest(results, stage)
        for level in results.settings.risks:
            headline = stage == LONG and level == low
            if headline or level in reached_by_any(results, stage):
                yield f"risk {level:g}{STAGES[stage]}", level, stage, headline


def _not_here(results: Results) -> Iterator[Evidence]:
    """The headline without numbers, where no network is trained at a constant rate."""
    if LONG not in present(results):
        yield Evidence.without("at a constant rate", NOT_RUN, NOT_HERE, 2)


def reaches_first(results: Results) -> Iterator[Evidence]:
    """Epochs until residual and plain networks reach a risk; one that never does is later than all."""
    import numpy as np

    yield from _not_here(results)
    for condition, level, stage, headline in _levels(results):
        pair = reached(results, level, stage)
        never = float(curve(results, PLAIN, "loss", stage).shape[1] + 1)
        plain, residual = (np.where(np.isnan(each), never, each) for each in pair)
        counts = [int(np.isfinite(each).sum()) for each in pair]
        detail = (
            f"residual first in {int((residual < plain).sum())} of {len(plain)} pairs; reached by "
            f"{counts[0]} plain, {counts[1]} residual"
        )
        yield Evidence(condition, [residual, plain], headline=headline, detail=detail, paired=True)


def both_reach(results: Results) -> Iterator[Evidence]:
    """ln of .002 over each network's lowest risk; open where not all got there and training stopped too soon."""
    import numpy as np

    for model in (PLAIN, RESIDUAL):
        if LONG not in present(results):
            yield Evidence.without(f"{model} networks", NOT_RUN, NOT_HERE)
            continue
        least = np.nanmin(smoothed(curve(results, model, "loss")), axis=1)
        detail = (
            f"{int((least <= LOW).sum())} of {len(least)} networks within {results.settings.epochs} epochs"
        )
        stopped = results.settings.epochs < PAPER_EPOCHS and bool((least > LOW).any())
        if stopped:
            detail += f", of the paper's {PAPER_EPOCHS}; lowest risks {least.min():.2g} to {least.max():.2g}"
        yield Evidence(f"{model} networks", [[] if stopped else np.log(LOW / least)], detail=detail)


def lower_error(results: Results) -> Iterator[Evidence]:
    """Test errors of plain and residual networks at the same risk, of the pairs in which both reach it."""
    import numpy as np

    yield from _not_here(results)
    for condition, level, stage, headline in _levels(results):
        plain, residual = (errors_at(results, model, level, stage) for model in (PLAIN, RESIDUAL))
        known = np.isfinite(plain) & np.isfinite(residual)
        if not (headline or known.any()):
            continue
        detail = "" if known.all() else f"{int(known.sum())} of {len(known)} pairs reach it"
        pair = [plain[known], residual[known]]
        yield Evidence(condition, pair, headline=headline, detail=detail, paired=True)
