"""Weights of one layer drawn anew, however the layer stores them: as (units, inputs, …) or the other way round."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from skiplab.architectures.initialisers import HMWI, standard_normal
from skiplab.architectures.orthogonal import DeltaOrthogonal, orthonormal
from skiplab.checks import require
from skiplab.subjects.weight_layers import WeightLayer, is_transposed, units_first
from skiplab.torch_private import own_parameters


def start(layer: WeightLayer, name: str, weights: Tensor) -> None:
    """Give a layer weights (units, inputs, …), and biases of 0, in place."""
    require(
        "weight" in own_parameters(layer),
        f"The weight of {name!r} is computed from other parameters; remove its parametrisation first.",
    )
    with torch.no_grad():
        layer.weight.copy_(units_first(layer, weights).to(layer.weight))
        if layer.bias is not None:
            layer.bias.zero_()


def gaussian(layer: WeightLayer, deviation: float, generator: torch.Generator) -> Tensor:
    """Draw N(0, deviation²)."""
    return deviation * standard_normal(units_first(layer, layer.weight).shape, generator)


def orthogonal_weights(layer: WeightLayer, gain: float, generator: torch.Generator) -> Tensor:
    """Draw ``gain`` times an orthonormal matrix, at the centre of a kernel that is 0 elsewhere (delta-orthogonal).

    A kernel of even sizes has no centre, and one that is as wide as its stride reads no input twice (a patch
    embedding): there the matrix (units, inputs × window) is orthonormal, as torch.nn.init.orthogonal_ has it.
    """
    shape = units_first(layer, layer.weight).shape
    window = tuple(shape[2:])
    groups = getattr(layer, "groups", 1)
    stride = tuple(getattr(layer, "stride", ())) if window else ()
    patches = window == stride and math.prod(window) > 1
    if all(size % 2 == 1 for size in window) and not patches:
        return DeltaOrthogonal(gain).weights(shape, generator, groups)
    each = [orthonormal(shape[0] // groups, math.prod(shape[1:]), generator) for _ in range(groups)]
    return gain * torch.cat(each).reshape(shape)


def layer_fans(layer: WeightLayer) -> tuple[float, float]:
    """The number of inputs that a unit sees, and of units that an input reaches, but for borders."""
    shape = units_first(layer, layer.weight).shape
    window = math.prod(shape[2:])
    # A transposed convolution with stride s writes every pixel 1/s as often in each direction.
    stride = math.prod(getattr(layer, "stride", ())) if is_transposed(layer) else 1
    return shape[1] * window / stride, shape[0] * window / getattr(layer, "groups", 1)


def hardt_ma_deviation(layer: WeightLayer) -> float:
    """1/S, S the fan-out: yu2019 eq 4 (``architectures.initialisers.HMWI``)."""
    fan_in, fan_out = layer_fans(layer)
    return HMWI().deviation(round(fan_in), round(fan_out))
