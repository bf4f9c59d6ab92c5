"""Which calls to torch are rectifiers, and what an activation is named: one rule for all instruments that follow.

``torch.relu(x)`` in a forward counts as ``nn.ReLU`` does. What is not one call to torch is no rectifier here, such as
``x * (x > 0)`` or ``torch.maximum(x, zeros)``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from skiplab.subjects.following import Call

# As followed calls are named: without the underscores of functions that work in place.
RECTIFIERS = frozenset(
    {
        *("relu", "relu6", "leaky_relu", "prelu", "rrelu", "elu", "celu", "selu"),
        *("gelu", "silu", "mish", "hardswish"),
    }
)
# Functions that are rectifiers if they begin at 0: the names of their arguments, and what these are by default.
_FROM_ZERO: dict[str, dict[str, Any]] = {
    "hardtanh": {"input": None, "min_val": -1.0, "max_val": 1.0},
    "clamp": {"input": None, "min": None, "max": None},
    "clip": {"input": None, "min": None, "max": None},
    "clamp_min": {"input": None, "min": None},
    "threshold": {"input": None, "threshold": None},
}


def rectifies(call: Call) -> bool:
    """Whether a call switches units on where what it takes is positive."""
    if call.name in RECTIFIERS:
        return True
    if call.name not in _FROM_ZERO or not call.followed or call.taken[0].is_complex():
        return False
    _, low, *high = _arguments(call).values()
    if not isinstance(low, int | float) or low != 0:  # a tensor of limits: of each unit its own
        return False
    return not high or high[0] is None or (isinstance(high[0], int | float) and high[0] > 0)


def limits(call: Call) -> tuple[float, float]:
    """The smallest and the largest value of ``hardtanh``."""
    given = _arguments(call)
    return float(given["min_val"]), float(given["max_val"])


def place_of(call: Call, parts: Mapping[str, nn.Module]) -> str:
    """The module that is the activation, else the module in whose forward it is called and the function."""
    part = parts[call.scope]
    holds = (*part.children(), *(() if isinstance(part, nn.PReLU) else part.parameters(recurse=False)))
    if call.scope and not holds:
        return call.scope
    return f"{call.scope}: {call.name}" if call.scope else call.name


def is_function(place: str, parts: Mapping[str, nn.Module]) -> bool:
    """Whether a name is one that ``place_of`` may give to a rectifier that is called as a function."""
    scope, _, function = place.rpartition(": ")
    return place not in parts and scope in parts and function in RECTIFIERS | set(_FROM_ZERO)


def _arguments(call: Call) -> dict[str, Any]:
    args, kwargs = call.values
    known = _FROM_ZERO[call.name]
    given = dict(zip(known, args, strict=False)) | kwargs
    return {name: given.get(name, default) for name, default in known.items()}
