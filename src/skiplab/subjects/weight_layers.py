"""Weight layers: those that multiply what they take by a matrix of weights, and have units.

Linear layers and convolutions, and what other libraries call by other names but computes the same: transformers'
``Conv1D``, in GPT-2, is a linear layer whose weights are stored the other way round, (inputs, units).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from torch import Tensor, nn

from skiplab.architectures.initialisers import WEIGHTED
from skiplab.checks import Refused, listed, no_such, require

# A transposed linear layer has the same attribute ``weight`` and is not listed: its class is another library's.
WeightLayer: TypeAlias = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


def weight_layers(module: nn.Module) -> dict[str, WeightLayer]:
    """The weight layers of a network by name.

    >>> list(weight_layers(model))
    ['0', '2', '4']
    """
    return {name: cast(WeightLayer, part) for name, part in module.named_modules() if is_weight_layer(part)}


def is_weight_layer(part: nn.Module) -> bool:
    """Whether a module is a linear layer or a convolution, its own or another library's."""
    return isinstance(part, WEIGHTED) or is_transposed(part)


def is_transposed(part: nn.Module) -> bool:
    """Whether a module is a linear layer with weights (inputs, units), as transformers' Conv1D is: x W + b."""
    # By its attributes, not by its class, which is known only where transformers is installed. The weight is read
    # last: a parametrisation would compute it anew.
    units = getattr(part, "nf", None)
    if not isinstance(units, int) or any(True for _ in part.children()):
        return False
    weight = getattr(part, "weight", None)
    return isinstance(weight, Tensor) and weight.ndim == 2 and weight.shape[1] == units


def check_weight_layers(module: nn.Module, layers: Sequence[str] | None) -> None:
    """Refuse names of layers that do not exist or have no weights."""
    listed("layers", layers)
    require(layers is None or len(layers) > 0, "layers is empty; name a layer, or leave it out for all.")
    known, every = weight_layers(module), dict(module.named_modules())
    require(len(known) > 0, "the network has no Linear or convolution, so there are no weights to change.")
    for name in layers or ():
        if name not in every:
            raise no_such("layer", name, known)
        if name not in known:
            inside = [other for other in known if other.startswith(f"{name}.")]
            remedy = f"name {inside[0]!r} instead" if inside else "name a Linear or a convolution"
            raise Refused(f"layer {name!r} is a {type(every[name]).__name__} without units; {remedy}.")


def units_of(layer: WeightLayer) -> int:
    """Number of units of a weight layer: its output features or channels."""
    return _size(layer, ("out_features", "out_channels", "nf"))


def inputs_of(layer: WeightLayer) -> int:
    """Number of units a weight layer reads: its input features or channels."""
    found = _size(layer, ("in_features", "in_channels"))
    return found or layer.weight.shape[0]


def unit_axis(layer: WeightLayer) -> int:
    """The axis of units in what a weight layer takes and gives, counted from the end."""
    # Not by the weight, which a parametrisation (spectral norm, say) would compute anew, changing its buffers.
    return -1 - len(getattr(layer, "kernel_size", ()))


def units_first(layer: WeightLayer, weight: Tensor) -> Tensor:
    """A layer's weights (…, units, inputs, …) from how they are stored, or back, with or without an axis of seeds."""
    return weight.mT if is_transposed(layer) else weight


def _size(layer: Any, names: Sequence[str]) -> int:
    return next((int(getattr(layer, name)) for name in names if hasattr(layer, name)), 0)
