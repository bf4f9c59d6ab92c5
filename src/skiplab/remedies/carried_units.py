"""Operations that carry units: each unit stays apart from the others and in its place, and all are treated alike.

A unit is a feature of a Linear layer or a channel of a convolution. Pooling carries channels, since it mixes pixels
of one channel only. Flattening does, since the pixels of channel c come before those of channel c + 1. So does 0.5·x.
A sum of two layers, a slice, x·x or a truncation does not, and neither does anything that ``subjects.operations``
does not list. Layers that make new units (Linear, convolution) and those with numbers for each unit (BatchNorm) are
the caller's business.

Max pooling carries units, though it is not linear. Dropout does too, being the identity in evaluation mode; alpha
dropout is not here: in training it also shifts what it keeps, which no mirrored weights take back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import fx, nn

from skiplab.subjects import operations

Parts: TypeAlias = Mapping[str, nn.Module]

# The number of axes, the last ones, over which a window moves.
_WINDOWS: dict[Any, int] = {kind: n for n, each in operations.WINDOWS.items() for kind in each.kinds}
# What does the same to every entry, wherever the units lie.
_ENTRYWISE = operations.COPIES.kinds | operations.DROPOUTS.kinds
_DIVISIONS = operations.DIVISIONS.kinds
SCALINGS = operations.PRODUCTS.kinds | _DIVISIONS
_VIEWS = operations.VIEWS.kinds


@dataclass(frozen=True)
class Units:
    """Where units lie: their axis, counted from the end, and their number, None where each has its pixels with it.

    Features are Units(-1, n), channels of images Units(-3, n), and flattened channels Units(-1, None).
    """

    axis: int
    count: int | None


def carried(node: fx.Node, source: fx.Node, units: Units, parts: Parts) -> Units | None:
    """Where the units of ``source`` lie behind ``node``, which reads it, or None if they are not carried."""
    if node.op not in ("call_module", "call_function", "call_method"):
        return None
    if node.op == "call_module":
        part = parts[str(node.target)]
        if isinstance(part, nn.Flatten):
            return _flattened(units, part.start_dim, part.end_dim)
        kind: Any = type(part)
    else:
        kind = node.target
    if kind in SCALINGS:
        return units if _scales(node) else None
    if not _is_first_alone(node, source):
        return None
    if kind in _WINDOWS:
        return units if units.axis < -_WINDOWS[kind] else None
    if kind in operations.RESIZINGS.kinds:  # all axes behind the second, so features would be mixed
        return units if units.axis < -1 else None
    if kind == "to":  # whole numbers would truncate
        types = [each for each in (*node.args, *node.kwargs.values()) if isinstance(each, torch.dtype)]
        return units if all(each.is_floating_point for each in types) else None
    if kind in operations.FLATTENINGS.kinds:
        return _flattened(units, _argument(node, 1, "start_dim", 0), _argument(node, 2, "end_dim", -1))
    if kind in operations.MEANS.kinds:
        return _averaged(units, _argument(node, 1, "dim", None), bool(_argument(node, 2, "keepdim", False)))
    if kind in _VIEWS:
        return _viewed(units, _sizes(node))
    return units if kind in _ENTRYWISE else None


def written_size(node: fx.Node) -> int | None:
    """The number of units that a view states, as in x.view(-1, 400); None if it states none."""
    if node.target not in _VIEWS:
        return None
    last = _sizes(node)[-1]
    return last if last != -1 else None


def _scales(node: fx.Node) -> bool:
    """Tell whether a product or quotient is one tensor times or by one number: x·2, 2·x, x/2, but not x·x or 2/x."""
    values = [*node.args, *(node.kwargs[name] for name in ("input", "other") if name in node.kwargs)]
    further = {name for name, value in node.kwargs.items() if value is not None} - {"input", "other"}
    numbers = [isinstance(value, int | float) for value in values]
    if further or sorted(numbers) != [False, True]:  # such as out or rounding_mode
        return False
    return isinstance(values[numbers.index(False)], fx.Node) and not (
        node.target in _DIVISIONS and numbers[0]
    )


def _is_first_alone(node: fx.Node, source: fx.Node) -> bool:
    """Tell whether a call works on ``source``, and does not use it anywhere else, as y.to(source) would."""
    mentions: list[fx.Node] = []
    fx.map_arg((node.args, node.kwargs), mentions.append)
    first = node.args[0] if node.args else node.kwargs.get("input")
    return first is source and mentions.count(source) == 1


def _argument(node: fx.Node, place: int, name: str, default: Any) -> Any:
    return node.args[place] if len(node.args) > place else node.kwargs.get(name, default)


def _flattened(units: Units, start: Any, end: Any) -> Units | None:
    if end != -1 or start not in (1, units.axis):
        return None
    return Units(-1, units.count if units.axis == -1 else None)


def _averaged(units: Units, dims: Any, keepdim: bool) -> Units | None:
    """Averages over all pixels, or over the second axis of features (batch, tokens, features)."""
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if units.axis == -1:
        return units if dims in ((1,), (-2,)) else None
    pixels = -units.axis - 1
    if sorted(dims) not in (list(range(-pixels, 0)), list(range(2, 2 + pixels))):
        return None
    return units if keepdim else Units(-1, units.count)


def _viewed(units: Units, sizes: tuple[Any, ...]) -> Units | None:
    """A view of two axes flattens; that a row is one sample's is taken for granted, for a trace has no shapes."""
    if len(sizes) != 2 or not isinstance(sizes[1], int):
        return None
    whole = sizes[1] == -1 or units.count is None or sizes[1] % units.count == 0
    return _flattened(units, 1, -1) if whole else None


def _sizes(node: fx.Node) -> tuple[Any, ...]:
    sizes = node.args[1:]
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else tuple(sizes)
