"""Every remedy by its id: what it is, where it comes from, and how it is applied to any network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from torch import nn

from skiplab.checks import require
from skiplab.remedies.looks_linear import looks_linear
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


def _looks_linear(
    model: nn.Module, batch: Batch, *, seed: int = 0, where: Sequence[str] | None = None
) -> Treated:
    require(where is None, "looks-linear changes the whole network; leave where out.")
    return Treated(looks_linear(model, seed=seed), "linear until it is trained, with orthogonal weights")


_ALL = (
    Remedy(
        "skips-identity",
        "add identity skip connections",
        "orhan2018",
        "orhan2018/figure-3",
        _with(add_skips, kind="identity"),
    ),
    Remedy(
        "skips-orthogonal",
        "add fixed random orthogonal skip connections",
        "orhan2018",
        "orhan2018/figure-7",
        _with(add_skips, kind="orthogonal"),
    ),
    Remedy(
        "looks-linear",
        "start as a linear function",
        "balduzzi2017",
        "balduzzi2017/figure-6",
        _looks_linear,
    ),
)
REMEDIES: Mapping[str, Remedy] = MappingProxyType({remedy.id: remedy for remedy in _ALL})
