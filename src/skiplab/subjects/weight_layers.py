"""Weight layers: those that multiply what they take by a matrix of weights, and have units.

Linear layers and convolutions, and what other libraries call by other names but computes the same: transformers'
``Conv1D``, in GPT-2, is a linear layer whose weights are stored the other way round, (inputs, units), as those of a
transposed convolution are.

Recurrent layers and attention hold several matrices and call none of them as a module: their units cannot be
followed. Measurements that need units say that they are left out (``left_out``); noise can be added to their matrices
all the same (``weight_matrices``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from torch import Tensor, nn

from skiplab.architectures.initialisers import WEIGHTED
from skiplab.checks import Refused, listed, no_such, require

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_SEVERAL = (nn.RNNBase, nn.RNNCellBase, nn.MultiheadAttention, nn.Bilinear)
# A transposed linear layer has the same attribute ``weight`` and is not listed: its class is another library's.
WeightLayer: TypeAlias = nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d


def weight_layers(module: nn.Module) -> dict[str, WeightLayer]:
    """The weight layers of a network by name.

    >>> list(weight_layers(model))
    ['0', '2', '4']
    """
    return {name: cast(WeightLayer, part) for name, part in module.named_modules() if is_weight_layer(part)}


def is_weight_layer(part: nn.Module) -> bool:
    """Whether a module is a linear layer or a convolution, torch's own or another library's."""
    return isinstance(part, WEIGHTED) or is_transposed(part)


def multiplies(part: nn.Module) -> bool:
    """Whether a module gives W x + b, called as a module: a weight layer, or a transposed convolution in groups."""
    return is_weight_layer(part) or isinstance(part, _TRANSPOSED)


def holds_several(part: nn.Module) -> bool:
    """Whether a module holds several matrices and calls none of them as a module: recurrence, attention, Bilinear."""
    return isinstance(part, _SEVERAL)


def left_out(module: nn.Module) -> str:
    """Which parts hold weight matrices and are no weight layers, in words; empty where there are none.

    >>> left_out(nn.Sequential(nn.LSTM(3, 4), nn.Linear(4, 2)))
    '0 (LSTM), whose units cannot be followed'
    """
    parts = [
        f"{name or 'the network'} ({type(part).__name__})"
        for name, part in module.named_modules()
        if isinstance(part, _SEVERAL) or (isinstance(part, _TRANSPOSED) and part.groups > 1)
    ]
    shown = parts if len(parts) <= 3 else [*parts[:2], f"{len(parts) - 2} others"]
    return f"{', '.join(shown)}, whose units cannot be followed" if parts else ""


def weight_matrices(module: nn.Module) -> dict[str, tuple[str, str]]:
    """The matrices that a network multiplies by, in the order of registration: for each its layer and its name there.

    A weight layer goes by its own name; of a recurrent layer or an attention each matrix by the name of a parameter.

    >>> list(weight_matrices(nn.Sequential(nn.GRU(3, 4), nn.Linear(4, 2))))
    ['0.weight_ih_l0', '0.weight_hh_l0', '1']
    """
    found: dict[str, tuple[str, str]] = {}
    for name, part in module.named_modules():
        if is_weight_layer(part):
            found[name] = (name, "weight")
        elif isinstance(part, _SEVERAL) or (isinstance(part, _TRANSPOSED) and part.groups > 1):
            own = (
                key
                for key, tensor in part.named_parameters(recurse=False)
                if "weight" in key and tensor.ndim > 1
            )
            found |= {f"{name}.{key}" if name else key: (name, key) for key in own}
    return found


def is_transposed(part: nn.Module) -> bool:
    """Whether a module stores its weights as (inputs, units): a transposed convolution, or a Conv1D, x W + b."""
    if isinstance(part, _TRANSPOSED):
        return part.groups == 1  # of groups the two axes do not change places
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
    missing = left_out(module) and f" (but {left_out(module)})"
    require(
        len(known) > 0,
        f"the network has no Linear or convolution{missing}, so there are no units to look at.",
    )
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
    window = len(getattr(layer, "kernel_size", ()))
    return weight.transpose(-window - 2, -window - 1) if is_transposed(layer) else weight


def _size(layer: Any, names: Sequence[str]) -> int:
    return next((int(getattr(layer, name)) for name in names if hasattr(layer, name)), 0)
