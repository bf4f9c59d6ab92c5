"""Every remedy by its id: what it is, where it comes from, and how it is applied to any network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch import nn

from skiplab.remedies.biases import bias_regularisation
from skiplab.remedies.branches import LIKE_THE_OTHERS, rescale_branches
from skiplab.remedies.initialising import initialise
from skiplab.remedies.one_norm import normalise_at
from skiplab.remedies.skips import add_skips
from skiplab.remedies.treated import Treated
from skiplab.subjects.batches import Batch


@dataclass(frozen=True)
class Remedy:
    """One remedy: ``apply(model, batch, *, seed=0, where=None) -> Treated``, where = names of layers to treat.

    ``study`` is the study of ours that tells how well it works, in the setting of the paper.
    """

    id: str
    title: str
    paper: str
    study: str
    apply: Callable[..., Treated]


def _with(remedy: Callable[..., Treated], **settings: Any) -> Callable[..., Treated]:
    def apply(
        model: nn.Module, batch: Batch, *, seed: int = 0, where: Sequence[str] | None = None
    ) -> Treated:
        return remedy(model, batch, seed=seed, where=where, **settings)

    return apply


def _rescaled(
    model: nn.Module, batch: Batch, *, seed: int = 0, where: Sequence[str] | None = None
) -> Treated:
    """Named branches are those that are out of line: they become like the others. All of them get 1/√n."""
    return rescale_branches(
        model, batch, seed=seed, where=where, beta=None if where is None else LIKE_THE_OTHERS
    )


_ALL = (
    Remedy(
        "skips-identity",
        "add identity skip connections",
        "orhan2018",
        "orhan2018/figure-3",
        _with(add_skips, kind="identity", beta="bounded"),
    ),
    Remedy(
        "skips-orthogonal",
        "add fixed random orthogonal skip connections",
        "orhan2018",
        "orhan2018/figure-7",
        _with(add_skips, kind="orthogonal", beta="bounded"),
    ),
    Remedy(
        "rescale-branches",
        "scale residual branches down",
        "balduzzi2017",
        "balduzzi2017/theorems",
        _rescaled,
    ),
    Remedy(
        "hardt-ma",
        "start residual branches near 0",
        "yu2019",
        "yu2019/table-1",
        _with(initialise, kind="hardt-ma"),
    ),
    Remedy(
        "looks-linear",
        "start as a linear function",
        "balduzzi2017",
        "balduzzi2017/figure-6",
        _with(initialise, kind="looks-linear"),
    ),
    Remedy(
        "orthogonal-weights",
        "start with orthogonal weights",
        "balduzzi2017",
        "balduzzi2017/ll-init",
        _with(initialise, kind="orthogonal"),
    ),
    Remedy(
        "gain",
        "start with the gain that keeps the variance of signals",
        "orhan2017",
        "orhan2017/figure-7",
        _with(initialise, kind="gain"),
    ),
    Remedy(
        "normalise-one-layer",
        "normalise behind one layer",
        "orhan2017",
        "orhan2017/figure-8",
        _with(normalise_at),
    ),
    Remedy(
        "bias-regularisation",
        "draw biases towards random targets",
        "orhan2018",
        "orhan2018/figure-5",
        _with(bias_regularisation),
    ),
)
REMEDIES: Mapping[str, Remedy] = MappingProxyType({remedy.id: remedy for remedy in _ALL})
