"""Pairs of residual and plain networks with the same function, as transform and table-2 train them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from skiplab.checks import one_of

if TYPE_CHECKING:
    from skiplab.ensembles import Ensemble
    from skiplab.training.regularisers import Penalty

# What a pair's plain networks are penalised by: nothing, ‖T⁻¹(p)‖² as section 4.1 asks, or the usual ‖p‖².
NO_DECAY, MATCHING, USUAL = "none", "matching", "usual"
DECAYS = (NO_DECAY, MATCHING, USUAL)
SHADES = ("#56B4E9", "#0072B2", "#332288", "#111111")

Penalties = tuple[list["Penalty"], list["Penalty"]]


def penalties_of(residual: Ensemble, plain: Ensemble, strength: float, decay: str = MATCHING) -> Penalties:
    """The penalties of both members of pairs: ½λ‖r‖² of the residual ones, and what ``decay`` names of the plain.

    Biases decay too, as in all networks of this paper.
    """
    from skiplab.architectures.transfer import id_entries
    from skiplab.training.regularisers import weight_decay

    if one_of("decay", decay, DECAYS) == NO_DECAY:
        return [], []
    around = id_entries(plain.skeleton) if decay == MATCHING else None
    return (
        [weight_decay(residual, strength, biases=True)],
        [weight_decay(plain, strength, around=around, biases=True)],
    )


def shade_of(depth: int, depths: Sequence[int]) -> str:
    """The colour of a depth in the figures of pairs: the deeper, the darker."""
    place = sorted(depths).index(depth)
    return SHADES[min(place, len(SHADES) - 1)]
