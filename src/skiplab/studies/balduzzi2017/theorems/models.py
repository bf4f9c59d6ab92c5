"""The nets of theorems 1–3 and corollary 1, each with its moments in theory and in wide real nets.

L is the paper's. Theorem 3's L crosses L − 1 modules (its products run to L − 1), the others' cross L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skiplab.theory.shattering.moments import Moments

LIMIT = math.e  # a mean over nets is trusted while E[v²]/E[v]² of a net's mean square v stays below
WIDE = 1.25  # and a net counts as wide while it stays below this, about N ≥ 22 L for plain nets


@dataclass(frozen=True)
class Model:
    """A kind of net; ``family`` says which theorem it belongs to and how it is built."""

    name: str
    label: str
    family: str  # plain, residual, batch norm, highway or plain batch norm
    alpha: float = 1.0
    beta: float = 1.0

    def modules(self, L: int) -> int:
        """How many modules the paper's L crosses."""
        return L - 1 if self.family == "batch norm" else L

    @property
    def normalised(self) -> bool:
        """Whether the net has batch normalisation."""
        return "batch norm" in self.family


PLAIN = Model("plain", "theorem 1", "plain")
RESIDUAL = Model("residual", "theorem 2", "residual")
RESCALED = Model("rescaled", "section 3.3, α = 1/√2", "residual", alpha=1 / math.sqrt(2))
NORMALISED = Model("batch norm 1", "theorem 3, β = 1", "batch norm")
NORMALISED_TENTH = Model("batch norm .1", "theorem 3, β = .1", "batch norm", beta=0.1)
NORMALISED_THIRD = Model("batch norm .3", "theorem 3, β = .3", "batch norm", beta=0.3)
HIGHWAY = Model("highway", "corollary 1", "highway")
PLAIN_NORMALISED = Model("plain batch norm", "plain with BN", "plain batch norm")

# In the theorems' own model; a plain net with BN is in none of them.
GATED = (PLAIN, RESIDUAL, RESCALED, NORMALISED, NORMALISED_THIRD, NORMALISED_TENTH, HIGHWAY)
# Of β = .3, the other end of section 3.3's range, no number of real nets is stated.
REAL = (*(model for model in GATED if model is not NORMALISED_THIRD), PLAIN_NORMALISED)
NAMED = {model.name: model for model in (*GATED, PLAIN_NORMALISED)}


def theory(model: Model, L: int) -> Moments:
    """The moments by the theorem, or by the exact products of its proof."""
    from skiplab.theory.shattering import covariances as exact

    return {
        "plain": lambda: exact.plain(L),
        "residual": lambda: exact.residual(L, model.alpha, model.beta),
        "batch norm": lambda: exact.residual_batch_norm(model.modules(L), model.beta),
        "highway": lambda: exact.highway(L),
        "plain batch norm": lambda: exact.plain_batch_norm(L, centred=False),
    }[model.family]()


def asymptotic(model: Model, L: int) -> tuple[float, float]:
    """Variance and correlation as theorem 3 prints them, "∼" for large β²L; the other theorems are exact."""
    from skiplab.theory.shattering import printed

    if model.family == "batch norm":
        variance = printed.printed_residual_batch_norm(L, model.beta).variance
        return variance, printed.printed_correlation(L, model.beta)
    found = theory(model, L)
    return found.variance, found.correlation


def corrected(model: Model, L: int, batch: int | None) -> Moments:
    """The moments of wide real nets: centring by BN over a batch, gates that agree without it.

    Inputs are orthogonal, as independent Gaussian ones nearly are; ``batch`` None stands for many samples.
    """
    from skiplab.theory.shattering import covariances as exact

    return {
        "plain": lambda: exact.plain(L, cosine=0.0),
        "residual": lambda: exact.residual(L, model.alpha, model.beta, cosine=0.0),
        "batch norm": lambda: exact.residual_batch_norm(
            model.modules(L), model.beta, centred=True, batch=batch
        ),
        "highway": lambda: exact.highway(L, cosine=0.0),
        "plain batch norm": lambda: exact.plain_batch_norm(L, batch=batch),
    }[model.family]()


def is_wide_enough(model: Model, L: int, width: int) -> bool:
    """Whether a net's mean square gradient varies little enough for a mean over nets to be trusted."""
    return _spread(model, L, width) <= LIMIT


def is_wide(model: Model, L: int, width: int) -> bool:
    """Whether corrections for infinitely wide nets may be expected to hold: the spread is near 1."""
    return _spread(model, L, width) <= WIDE


def _spread(model: Model, L: int, width: int) -> float:
    from skiplab.theory.shattering.covariances import spread

    if model.family in ("batch norm", "highway"):
        return 1.0  # branches shrink with depth, and what they add with them
    carry = model.alpha if model.family == "residual" else 0.0
    return spread(L, width, carry, model.alpha * model.beta)
