"""One normalisation behind one layer, as in orhan2017, figure 8."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from skiplab.checks import Refused, one_of, require, seeded
from skiplab.remedies.extended import WithNorm, extend
from skiplab.remedies.observing import Seen, observed, require_called
from skiplab.remedies.tracing import copied
from skiplab.remedies.treated import Treated, chosen
from skiplab.subjects.batches import Batch
from skiplab.subjects.weight_layers import (
    WeightLayer,
    check_weight_layers,
    unit_axis,
    units_of,
    weight_layers,
)

REMEDY = "normalising one layer"
KINDS = ("auto", "batch", "layer")
EPS = 1e-5  # torch's default, which is added to the variance
# A signal whose variance is not far above EPS is not brought to 1: at 100 EPS what is left out is half a percent.
LEAST_VARIANCE = 100 * EPS
_BATCH_NORMS = {-1: nn.BatchNorm1d, -2: nn.BatchNorm1d, -3: nn.BatchNorm2d, -4: nn.BatchNorm3d}


def normalise_at(
    model: nn.Module,
    batch: Batch,
    *,
    layer: str | None = None,
    kind: str = "auto",
    seed: int = 0,
    where: Sequence[str] | None = None,
) -> Treated:
    """Return a copy with one normalisation behind one layer, in training and in evaluation.

    ``kind="batch"`` is batch normalisation, whose running statistics start with those of the batch; ``kind="layer"``
    layer normalisation, of images over channels and pixels together; the default is batch normalisation, and layer
    normalisation of tokens (samples, tokens, features).

    The layer is by default the middle one of those that are called, as in orhan2017, figure 8, where one batch
    normalisation in the middle made up for vanishing gradients; where signals have vanished there (variance below
    100 times the ε that the normalisation adds), the last one before it where they have not. ``where`` may name one
    layer too, or what holds one.

    >>> normalise_at(model, x)
    Sequential treated: batch normalisation behind 2
    """
    one_of("kind", kind, KINDS)
    seeded(seed)  # nothing is drawn; every remedy takes one
    require(layer is None or where is None, "both layer and where were given; pass one of them.")
    check_weight_layers(model, None if layer is None else [layer])
    layers = weight_layers(model)
    named = [layer] if layer is not None else where
    wanted = chosen("weight layer", layers, named, dict(model.named_modules()))
    seen = observed(model, batch, wanted)
    name = wanted[0] if named is not None else _middle(model, seen)
    calls = require_called(seen, name)
    require(len(calls) == 1, f"layer {name!r} is called {len(calls)} times; choose one that is called once.")
    output = calls[0].given
    assert output is not None
    if kind == "auto":
        kind = "batch" if output.ndim == 1 - unit_axis(layers[name]) else "layer"
    norm = _norm(name, layers[name], output, kind)
    changed = copied(model, REMEDY)
    part = changed.get_submodule(name)
    extend(part, WithNorm)
    part.added_norm = norm.train(part.training)
    return Treated(changed, f"{kind} normalisation behind {name}")


def _middle(model: nn.Module, seen: dict[str, list[Seen]]) -> str:
    """The middle layer of those that are called once, or the last one before it whose signals have not vanished."""
    hidden = list(seen)[:-1]  # the last layer's output is the network's
    once = [name for name in hidden if len(seen[name]) == 1]
    for name in reversed(once[: len(once) // 2 + 1]):
        output = seen[name][0].given
        assert output is not None
        if len(output) > 1 and float(output.double().var(0).mean()) > LEAST_VARIANCE:
            return name
    raise Refused(
        f"{type(model).__name__} has no layer up to its middle that is called once and whose outputs differ between "
        f"samples by a variance above {LEAST_VARIANCE:g}; name the layer to normalise."
    )


def _norm(name: str, layer: WeightLayer, output: Tensor, kind: str) -> nn.Module:
    units, axis = units_of(layer), unit_axis(layer)
    if kind == "layer":
        norm: nn.Module = nn.LayerNorm(units, eps=EPS) if axis == -1 else nn.GroupNorm(1, units, eps=EPS)
        return norm.to(output)
    require(
        output.ndim == 1 - axis,
        f"{name!r} gives {tuple(output.shape)}, of which batch normalisation would take the second axis for units; "
        'use kind="layer".',
    )
    require(len(output) > 1, "a batch of one sample has no variance; pass at least 2 samples.")
    by_batch = _BATCH_NORMS[axis](units, eps=EPS).to(output)
    others = [each for each in range(output.ndim) if each != 1]
    values = output.double()
    assert by_batch.running_mean is not None
    assert by_batch.running_var is not None
    by_batch.running_mean.copy_(values.mean(others))
    by_batch.running_var.copy_(values.var(others))
    return by_batch
