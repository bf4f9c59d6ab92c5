"""Which unit acts directly on which in a layered network, found by running it with its layers held fixed.

Every block's output is noted and then replaced by given activities, so what a block computes depends on each earlier
layer only through a connection of its own: the Jacobian ∂x_l/∂x_k with everything between held fixed. It is taken
with all weights at 0, which leaves the skips, and at 1, where units whose inputs are positive are active; the
difference is what goes through weights. At −1 rectified units are silent, and what is left came after them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.func import functional_call

from skiplab.checks import require
from skiplab.subjects.blocks import block_names
from skiplab.subjects.hooks import visited

WEIGHT, SKIP, SILENT = "weight", "skip", "left when silent"
Effects = dict[tuple[int, int], Tensor]


@dataclass(frozen=True)
class Connection:
    """A direct effect of unit ``source`` of layer ``before`` on unit ``target`` of layer ``after``, both from 1.

    Layer 1 is the input; ``strength`` is the derivative, for a weight that of a weight of 1.
    """

    kind: str
    before: int
    source: int
    after: int
    target: int
    strength: float


def direct_effects(net: nn.Module, activities: Sequence[Tensor], weight: float) -> Effects:
    """Jacobians of every layer in every earlier one, (units, units) by (before, after), all weights being equal.

    ``activities`` are those of the input and of each block, all but the last layer's, each (units,).
    """
    names = block_names(net)
    require(
        len(activities) == len(names) + 1,
        f"activities are {len(activities)}, but must be {len(names) + 1}: the input's and one a block.",
    )
    held = [x.detach()[None].clone().requires_grad_() for x in activities]
    noted: list[Tensor] = []

    def hold(_: nn.Module, __: object, ___: object, output: Tensor) -> Tensor:
        noted.append(output)
        return held[len(noted)]

    parts = dict(net.named_modules())
    weights = {name: torch.full_like(tensor, weight) for name, tensor in net.named_parameters()}
    with visited(after=[(parts[name], hold) for name in names]):
        noted.append(functional_call(net, weights, held[0]))
    effects: Effects = {}
    for after, output in enumerate(noted, start=2):
        earlier = held[: after - 1]
        rows = [
            torch.autograd.grad(unit, earlier, retain_graph=True, allow_unused=True) for unit in output[0]
        ]
        for before, at in enumerate(earlier, start=1):
            found = [row[before - 1] for row in rows]
            effects[before, after] = torch.stack(
                [torch.zeros_like(at[0]) if g is None else g[0] for g in found]
            )
    return effects


def connections(net: nn.Module, activities: Sequence[Tensor]) -> list[Connection]:
    """Every weight, every skip, and what is left when rectified units are silent; activities are positive."""
    require(
        all(bool((x > 0).all()) for x in activities), "activities must all be positive, or units are silent."
    )
    skips, all_, silent = (direct_effects(net, activities, weight) for weight in (0.0, 1.0, -1.0))
    through = {pair: all_[pair] - skips[pair] for pair in all_}
    last = max(after for _, after in all_)
    hidden = {pair: effect for pair, effect in silent.items() if pair[1] < last}  # the output is linear
    return [
        *_nonzero(WEIGHT, through),
        *_nonzero(SKIP, skips),
        *_nonzero(SILENT, hidden),
    ]


def _nonzero(kind: str, effects: Effects) -> Iterator[Connection]:
    for (before, after), effect in effects.items():
        for target, source in effect.nonzero().tolist():
            strength = float(effect[target, source])
            yield Connection(kind, before, source + 1, after, target + 1, strength)
