"""The weight decay that the paper logs, ½λ‖w‖²/128, the one that acts, ½λ‖w‖², and the loss beside both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.yu2019.controls import without_decay
from skiplab.studies.yu2019.networks import Training
from skiplab.studies.yu2019.pairs import (
    NOT_HERE,
    PLAIN,
    RESIDUAL,
    both,
    is_papers,
    logs,
    printed,
    values,
    waiting,
    without_depths,
)
from skiplab.studies.yu2019.untrained import FAN_IN, is_papers_size, untrained

if TYPE_CHECKING:
    import numpy as np

MODELS = (PLAIN, RESIDUAL)
# Table 4: the decay term by depth, before and after training, and the loss before.
DECAY_BEFORE = {
    PLAIN: {20: 0.0005393, 32: 0.0008878, 44: 0.001238},
    RESIDUAL: {20: 2.014e-6, 32: 2.559e-6, 44: 3.118e-6},
}
DECAY_AFTER = {
    PLAIN: {20: 0.0007743, 32: 0.0009458, 44: 0.001180},
    RESIDUAL: {20: 0.0005122, 32: 0.0005561, 44: 0.0006194},
}
LOSS_BEFORE = {PLAIN: {20: 2.309, 32: 2.308, 44: 2.309}, RESIDUAL: {20: 2.305, 32: 2.305, 44: 2.306}}
# The losses after training that its ratios are of.
PRINTED_LOSS = {
    PLAIN: {20: 0.07227, 32: 0.1225, 44: 0.4950},
    RESIDUAL: {20: 0.04132, 32: 0.04880, 44: 0.07345},
}
OVER = 80.0  # times the printed term all its losses are
RATIO = 268.0  # of the decay terms of 20 layers before training, supplement D
ACTING = Training.decay / 2
LOGGED = ACTING / Training.batch_size  # the factor of ‖w‖² that the table's numbers have
NORMS_AGREE = 0.1  # within which our ‖w‖² must be the table's for its loss and ours to stand beside one term
NOT_ITS_SIZE = "untrained networks here are not of the paper's size"


# Before training -----------------------------------------------------------------------------------------------


def decay_before(model: str) -> Found:
    """Evidence on one kind's ½λ‖w‖²/128 before training; with input channels in equation 4 as further rows."""

    def found(results: Results) -> Iterator[Evidence]:
        here = is_papers_size(results.settings)
        detail = "" if here else NOT_ITS_SIZE
        for depth, number in DECAY_BEFORE[model].items():
            sample: Any = LOGGED * untrained(results, model, depth, "squares") if here else ()
            words = f"{model}, {depth} layers"
            yield waiting(Evidence(words, [sample], paper_value=number, detail=detail))
            if model == RESIDUAL and here:
                other = LOGGED * untrained(results, FAN_IN, depth, "squares")
                words += ", input channels in equation 4"
                yield Evidence(words, [other], paper_value=number, headline=False)

    return found


def ratio_before(results: Results) -> Iterator[Evidence]:
    """The decay of plain over that of residual networks of 20 layers."""
    here = is_papers_size(results.settings)
    squares = [untrained(results, model, 20, "squares") for model in MODELS]
    sample: Any = squares[0] / squares[1] if here else ()
    detail = "" if here else NOT_ITS_SIZE
    yield waiting(Evidence("20 layers", [sample], paper_value=RATIO, detail=detail))


def loss_before(results: Results) -> Iterator[Evidence]:
    """L before training, on training images as they are."""
    here = is_papers_size(results.settings)
    for model, numbers in LOSS_BEFORE.items():
        for depth, number in numbers.items():
            sample: Any = untrained(results, model, depth, "clean_loss") if here else ()
            detail = "" if here else NOT_ITS_SIZE
            yield waiting(Evidence(f"{model}, {depth} layers", [sample], paper_value=number, detail=detail))


# Loss beside decay ---------------------------------------------------------------------------------------------


def outweighs(results: Results) -> Iterator[Evidence]:
    """ln of L over ½λ‖w‖²/128, the term that the table prints, beside the paper's ratio."""
    import numpy as np

    for condition, trained, model, depth, loss, squares in _ends(results):
        decay = (DECAY_AFTER if trained else DECAY_BEFORE)[model].get(depth)
        number = (PRINTED_LOSS if trained else LOSS_BEFORE)[model].get(depth)
        ratios = loss / (LOGGED * squares)
        detail = f"{ratios.mean():,.0f} times" if len(ratios) else ""
        if decay and number and detail:
            detail += f", {number / decay:,.0f} in the paper"
        yield waiting(Evidence(condition, [np.log(ratios)], detail=detail))
    for model in MODELS if results.settings.trained else ():
        yield from without_depths(results, f"{model}, {{depth}} layers, after training", 1)


def outweighs_acting(results: Results) -> Iterator[Evidence]:
    """ln of L over ½λ‖w‖², the term that probably acts, where our ‖w‖² is that of Table 4."""
    import numpy as np

    for condition, trained, model, depth, loss, squares in _ends(results):
        number = (DECAY_AFTER if trained else DECAY_BEFORE)[model].get(depth)
        term = ACTING * squares
        agree = number is not None and len(term) > 0 and _agrees(LOGGED * squares, number)
        sample: Any = np.log(loss / term) if agree else ()
        detail = f"L {loss.mean():.3g}, decay {term.mean():.3g}" if len(loss) else NOT_HERE
        yield Evidence(condition, [sample], detail=detail if agree else f"{detail}; ‖w‖² is not Table 4's")


def _ends(results: Results) -> Iterator[tuple[str, bool, str, int, np.ndarray, np.ndarray]]:
    """Loss and ‖w‖² of networks before and after training, in words and by model and depth."""
    settings = results.settings
    for model in MODELS:
        for depth in settings.untrained_depths:
            loss, squares = (untrained(results, model, depth, each) for each in ("clean_loss", "squares"))
            yield f"{model}, {depth} layers, before training", False, model, depth, loss, squares
        for depth in settings.depths:
            loss, squares = (values(results, model, depth, each) for each in ("loss", "squares"))
            yield f"{model}, {depth} layers, after training", True, model, depth, loss, squares


def _agrees(ours: np.ndarray, number: float) -> bool:
    return bool(abs(ours.mean() / number - 1) <= NORMS_AGREE)


# After training ------------------------------------------------------------------------------------------------


def decay_after(results: Results) -> Iterator[Evidence]:
    """½λ‖w‖²/128 after training."""
    import numpy as np

    for words, number, squares, detail in printed(results, DECAY_AFTER, "squares"):
        yield waiting(Evidence(words, [LOGGED * np.asarray(squares)], paper_value=number, detail=detail))


def residual_smaller(results: Results) -> Iterator[Evidence]:
    """ln ‖w‖² of plain and of residual networks after training."""
    for depth in sorted(results.settings.depths):
        plain, residual = (DECAY_AFTER[model].get(depth) for model in MODELS)
        detail = f"{plain / residual:.2f} times in the paper" if plain and residual else ""
        pair = logs(results, depth, "squares")
        yield waiting(Evidence(f"{depth} layers", pair, detail=detail, paired=True))
    if results.settings.trained:
        yield from without_depths(results)


def gap_without_decay(results: Results) -> Iterator[Evidence]:
    """The gap between the kinds without decay less half of that with it, as a share of the latter's mean."""
    settings = results.settings
    depth = settings.first_depth
    for words, quantity, numbers in (("ln L", "loss", logs), ("test error", "test_error", both)):
        own: dict[str, Any] = {"stage": without_decay.__name__, "epoch": settings.control_epochs}
        gaps = []
        for decay in (Training.decay, 0.0):
            plain, residual = numbers(results, depth, quantity, decay=decay, **own)
            gaps.append(plain - residual)
        usual, without = gaps
        gap = float(usual.mean()) if len(usual) else 0.0
        sample: Any = (without - usual / 2) / gap if gap > 0 else ()
        means = f"{words}: gap {gap:.3g} with decay, {without.mean():.3g} without" if len(usual) else NOT_HERE
        detail = means if gap > 0 or not len(usual) else f"{means}; there is no gap to keep"
        found = Evidence(f"{depth} layers, {words}", [sample], detail=detail)
        yield found if len(usual) else waiting(found)


def is_whole(results: Results) -> bool:
    """Whether networks were trained as the paper's were."""
    return results.settings.trained and is_papers(results.settings)
