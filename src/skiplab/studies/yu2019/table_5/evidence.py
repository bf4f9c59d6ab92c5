"""Test error and loss of networks with T′, beside residual ones and beside variants of T′."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.yu2019.pairs import RESIDUAL, if_learnt, is_papers, same_seeds, steps, values, waiting

if TYPE_CHECKING:
    import numpy as np

DIAGONAL, DENSE, ONES, WIDE_START, SHIFTED = (
    "diagonal",
    "diagonal-dense",
    "diagonal-dense-ones",
    "diagonal-kwi",
    "diagonal-shifted",
)
VARIANTS = {
    DENSE: "dense lower half",
    ONES: "dense lower half with ones",
    WIDE_START: "KWI",
    SHIFTED: "permutation",
}
# Table 5 by depth: training loss and test error of networks with T′, the error of "residual" ones (Table 2's plain).
LOSSES = {20: 0.9385, 32: 0.9440, 44: 0.9397}
ERRORS = {20: 0.3152, 32: 0.3119, 44: 0.3183}
BASELINE = {20: 0.1121, 32: 0.1085, 44: 0.1159}
DENSE_ERROR = 0.2131
KEPT = 0.76


def ends(results: Results, model: str, depth: int, quantity: str = "test_error") -> np.ndarray:
    """What networks with T′ or a variant of it end with."""
    return values(results, model, depth, quantity, stage="train_diagonals")


def residual_ends(results: Results, depth: int, quantity: str = "test_error") -> np.ndarray:
    """What the residual networks of as many seeds end with."""
    return values(results, RESIDUAL, depth, quantity)[: results.settings.diagonal_runs]


def printed_errors(results: Results) -> Iterator[Evidence]:
    """Test errors less the printed ones, of T′ by depth and of the variant with a dense lower half."""
    import numpy as np

    rows = [(f"T′, {depth} layers", DIAGONAL, depth, number, True) for depth, number in ERRORS.items()]
    rows += [
        (f"20 layers, {VARIANTS[model]}", model, 20, DENSE_ERROR, model == DENSE) for model in (DENSE, ONES)
    ]
    for words, model, depth, number, headline in rows:
        here = is_papers(results.settings)
        sample = ends(results, model, depth) - number if here else np.empty(0)
        detail = f"{number:.4g} in the paper" if here else ""
        yield waiting(Evidence(words, [sample], headline=headline, detail=detail))


def printed_losses(results: Results) -> Iterator[Evidence]:
    """L of networks with T′."""
    for depth, number in LOSSES.items():
        here = is_papers(results.settings)
        sample: Any = ends(results, DIAGONAL, depth, "loss") if here else ()
        yield waiting(Evidence(f"{depth} layers", [sample], paper_value=number))


def better_than_guessing(results: Results) -> Iterator[Evidence]:
    """Accuracy less that of guessing among ten classes."""
    for depth in sorted(results.settings.depths):
        paper = 0.9 - ERRORS[depth] if is_papers(results.settings) else None
        yield Evidence(f"{depth} layers", [0.9 - ends(results, DIAGONAL, depth)], paper_value=paper)


def keep_accuracy(results: Results) -> Iterator[Evidence]:
    """The accuracy of networks with T′ over that of residual networks of the same seeds, less .76."""
    for depth in sorted(results.settings.depths):
        own, residual = 1 - ends(results, DIAGONAL, depth), 1 - residual_ends(results, depth)
        paper = (1 - ERRORS[depth]) / (1 - BASELINE[depth]) - KEPT if is_papers(results.settings) else None
        found = Evidence(f"{depth} layers", [own / residual - KEPT], paper_value=paper)
        yield if_learnt(results, found)


def no_degradation(results: Results) -> Iterator[Evidence]:
    """ln L of the deepest and of the shallowest networks with T′."""
    import numpy as np

    depths = sorted(results.settings.depths)
    for start, end in steps(depths):
        pair = [np.log(ends(results, DIAGONAL, depth, "loss")) for depth in (end, start)]
        paper = float(np.log(LOSSES[end] / LOSSES[start])) if is_papers(results.settings) else None
        headline = (start, end) == (depths[0], depths[-1])
        words = f"{start} → {end} layers"
        found = Evidence(words, same_seeds(*pair), paper_value=paper, headline=headline, paired=True)
        yield if_learnt(results, found)


def dense_better(results: Results) -> Iterator[Evidence]:
    """Test errors of T′ and of both readings of a dense lower half."""
    depth = results.settings.first_depth
    for model in (DENSE, ONES):
        pair = [ends(results, DIAGONAL, depth), ends(results, model, depth)]
        paper = ERRORS[depth] - DENSE_ERROR if is_papers(results.settings) else None
        words = f"{depth} layers, {VARIANTS[model]}"
        found = Evidence(words, pair, paper_value=paper, headline=model == DENSE, paired=True)
        yield if_learnt(results, found)


# Ours ----------------------------------------------------------------------------------------------------------


def zeroed_worse(results: Results) -> Iterator[Evidence]:
    """Test errors of trained residual networks with zeroed kernels and of networks trained with T′."""
    for depth in sorted(results.settings.depths):
        zeroed = residual_ends(results, depth, "diagonal_test_error")
        pair = [zeroed, ends(results, DIAGONAL, depth)]
        yield if_learnt(results, Evidence(f"{depth} layers", pair, paired=True))


def _beside(model: str) -> Found:
    """Test errors of a variant and of T′ at the first depth."""

    def found(results: Results) -> Iterator[Evidence]:
        depth = results.settings.first_depth
        pair = [ends(results, each, depth) for each in (model, DIAGONAL)]
        yield if_learnt(results, Evidence(f"{depth} layers", pair, paired=True))

    return found


kwi_worse, shifted = _beside(WIDE_START), _beside(SHIFTED)
