"""Where a CReLU's doubled units go: followed from each rectifier to the layers that read them.

CReLU puts ρ(x) and ρ(−x) side by side along the axis of units. Pooling, dropout, flattening and the like keep the
two halves apart and in order, so what reads them is one (W, −W) away from being linear; a normalisation in between
has to be doubled too. A sum, a product, an output or anything unknown cannot take twice the units.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import torch
from torch import fx, nn
from torch.nn import functional as F

from skiplab.architectures.activations import CReLU
from skiplab.architectures.initialisers import WEIGHTED
from skiplab.architectures.rescaled import MeanCentring
from skiplab.checks import Refused, require
from skiplab.remedies.tracing import is_relu, name_of

Parts: TypeAlias = Mapping[str, nn.Module]
BatchNorm = nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d
Convolution = nn.Conv1d | nn.Conv2d | nn.Conv3d

_POOLS = tuple(
    getattr(nn, f"{kind}{n}d")
    for kind in ("AvgPool", "MaxPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "Dropout", "ZeroPad")
    for n in (1, 2, 3)
)
_KEEPING_MODULES = (*_POOLS, nn.Identity, nn.Dropout, nn.Upsample)
_KEEPING_FUNCTIONS = {
    *(
        getattr(F, f"{kind}_pool{n}d")
        for kind in ("avg", "max", "adaptive_avg", "adaptive_max")
        for n in (1, 2, 3)
    ),
    *(F.dropout, F.dropout1d, F.dropout2d, F.dropout3d, F.interpolate, F.alpha_dropout),
}
_KEEPING_METHODS = {"contiguous", "clone", "to", "float", "double"}
_SCALINGS = {operator.mul, operator.truediv, torch.mul, torch.div, "mul", "div"}
_ARITHMETIC = {
    operator.add,
    operator.sub,
    operator.iadd,
    torch.add,
    torch.sub,
    "add",
    "sub",
    "add_",
    *_SCALINGS,
}


@dataclass(frozen=True)
class Units:
    """Where units lie: their axis, counted from the end, and how many, None once pixels are mixed in."""

    axis: int
    count: int | None


@dataclass
class Doubling:
    """What has to change so that the units of every rectifier can be doubled."""

    rectifiers: dict[fx.Node, Units] = field(default_factory=dict)  # ReLUs, each with its own units
    mirrored: dict[str, bool] = field(default_factory=dict)  # readers; True: of a CReLU that was there before
    norms: list[str] = field(default_factory=list)
    sizes: list[fx.Node] = field(default_factory=list)  # x.view(n, units) with a number that doubles


def doubling(graph: fx.Graph, parts: Parts, relus: bool) -> Doubling:
    """Follow every CReLU there is and, if asked, every ReLU that is to become one; refuse what cannot be."""
    plan = Doubling()
    given: dict[fx.Node, Units] = {}  # what each node gives, in the order of the graph: parents come first
    wide: set[fx.Node] = set()
    for node in graph.nodes:
        read = next((given[parent] for parent in node.all_input_nodes if parent in given), None)
        units = _given(node, read, parts)
        if units is not None:
            given[node] = units
        before = node.op == "call_module" and isinstance(parts[str(node.target)], CReLU)
        if not before and not (relus and is_relu(node, parts)):
            continue
        if read is None:
            raise Refused(
                f"The units that {name_of(node)} rectifies come from no Linear or convolution module that could be "
                'followed, so they cannot be doubled; use kind="prelu".'
            )
        if not before:
            plan.rectifiers[node] = read
        _follow(node, node, read, parts, plan, wide, before)
    _every_call_is_wide(graph, plan, wide)
    return plan


def _given(node: fx.Node, read: Units | None, parts: Parts) -> Units | None:
    """The units a node gives, as far as they can be told, before any are doubled."""
    part = parts[str(node.target)] if node.op == "call_module" else None
    if isinstance(part, nn.Linear):
        return Units(-1, part.out_features)
    if isinstance(part, Convolution):
        return Units(1 - part.weight.ndim, part.out_channels)
    if read is None or isinstance(part, CReLU):
        return None
    # A sum of layers, as in a residual network, has the units of each of them.
    same = is_relu(node, parts) or isinstance(part, BatchNorm | MeanCentring | nn.PReLU)
    summed = node.op != "call_module" and node.target in _ARITHMETIC
    return read if same or summed else _carried(node, read, parts)


def _follow(
    start: fx.Node,
    node: fx.Node,
    units: Units,
    parts: Parts,
    plan: Doubling,
    wide: set[fx.Node],
    before: bool,
) -> None:
    """Walk from a rectifier to its readers, noting what has to be widened on the way."""
    for user in node.users:
        part = parts.get(str(user.target)) if user.op == "call_module" else None
        wide.add(user)
        if isinstance(part, WEIGHTED):
            _check_reader(start, user, part, units, before)
            plan.mirrored[str(user.target)] = before
        elif _asks_for_batch_size(user):
            continue
        elif isinstance(part, BatchNorm):
            if not before and str(user.target) not in plan.norms:
                plan.norms.append(str(user.target))
            _follow(start, user, units, parts, plan, wide, before)
        else:
            carried = _carried(user, units, parts)
            if carried is None:
                feeds = "the output" if user.op == "output" else name_of(user)
                advice = "make it a ReLU" if before else 'use kind="prelu"'
                raise Refused(
                    f"The {'CReLU' if before else 'ReLU'} {name_of(start)} feeds {feeds}, which cannot take doubled "
                    f"units and mirror them; {advice}."
                )
            if not before and _written_size(user) is not None and user not in plan.sizes:
                plan.sizes.append(user)
            _follow(start, user, carried, parts, plan, wide, before)


def _check_reader(start: fx.Node, user: fx.Node, part: nn.Module, units: Units, before: bool) -> None:
    if isinstance(part, nn.Linear):
        axis, count, groups = -1, part.in_features, 1
    else:
        assert isinstance(part, Convolution)
        axis, count, groups = 1 - part.weight.ndim, part.in_channels, part.groups
    count = count // 2 if before else count
    require(
        groups == 1,
        f"{name_of(user)} reads the ReLU {name_of(start)} in {groups} groups, so a CReLU's halves cannot be told "
        'apart; use kind="prelu".',
    )
    require(
        axis == units.axis and units.count in (None, count),
        f"{name_of(user)} reads {count} units, not those of the ReLU {name_of(start)} in their order, so it cannot "
        'be mirrored; use kind="prelu".',
    )


def _carried(node: fx.Node, units: Units, parts: Parts) -> Units | None:
    """Where units lie after an operation that keeps them apart and in order, or None."""
    if node.op == "call_module":
        part = parts[str(node.target)]
        if isinstance(part, nn.Flatten):
            return _flattened(units, part.start_dim, part.end_dim)
        return units if isinstance(part, _KEEPING_MODULES) else None
    if node.op not in ("call_function", "call_method"):
        return None
    target, rest = node.target, node.args[1:]
    if target in (torch.flatten, "flatten"):
        start = node.kwargs.get("start_dim", rest[0] if rest else 0)
        return _flattened(units, start, node.kwargs.get("end_dim", rest[1] if len(rest) > 1 else -1))
    if target in (torch.mean, "mean"):
        dims = node.kwargs.get("dim", rest[0] if rest else None)
        return _averaged(units, dims, bool(node.kwargs.get("keepdim", rest[1] if len(rest) > 1 else False)))
    if target in ("view", "reshape", torch.reshape):
        sizes = _sizes(node)
        return _flattened(units, 1, -1) if len(sizes) == 2 and isinstance(sizes[1], int) else None
    if target in _SCALINGS:
        return units if len(node.all_input_nodes) == 1 else None
    keeping = target in (_KEEPING_FUNCTIONS if node.op == "call_function" else _KEEPING_METHODS)
    return units if keeping else None


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


def _sizes(node: fx.Node) -> tuple[Any, ...]:
    sizes = node.args[1:]
    return tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], tuple | list) else tuple(sizes)


def _written_size(node: fx.Node) -> int | None:
    """The number of units that a view states, as in x.view(-1, 400); None if it states none."""
    if node.target not in ("view", "reshape", torch.reshape):
        return None
    last = _sizes(node)[-1]
    return last if last != -1 else None


def _asks_for_batch_size(node: fx.Node) -> bool:
    if node.op == "call_method" and node.target == "size":
        return node.args[1:] == (0,)
    if node.op == "call_function" and node.target is getattr:
        return node.args[1] == "shape" and all(
            user.target is operator.getitem and user.args[1] == 0 for user in node.users
        )
    return False


def _every_call_is_wide(graph: fx.Graph, plan: Doubling, wide: set[fx.Node]) -> None:
    """Refuse a layer that is called in several places of which only some see doubled units."""
    changed = {*plan.mirrored, *plan.norms}
    for node in graph.nodes:
        require(
            node.op != "call_module" or node.target not in changed or node in wide,
            f"{name_of(node)} is called in several places and only some of them follow a ReLU, so it cannot read a "
            'CReLU\'s doubled units; use kind="prelu".',
        )
