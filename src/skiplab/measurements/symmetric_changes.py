"""Changes of weights that leave a plain network's function alone: which layers allow them, and the changed networks.

A changed network is a Subject with other tensors in place of some of its own; the user's module is not touched.
Members of an ensemble may be changed in different layers at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, require
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.hooks import visited
from skiplab.subjects.weight_layers import units_first, units_of, weight_layers
from skiplab.subjects.wiring import Wiring, stored_names

# Weight norm, spectral norm, pruning: what such a layer multiplies by is made anew in every pass.
_COMPUTED = (
    "the weights of {} are computed from other parameters, so they cannot be changed by themselves; name other "
    "layers, or measure a copy whose weights are parameters (torch.nn.utils.parametrize.remove_parametrizations)."
)


@dataclass(frozen=True)
class Pair:
    """Layers k and l of a chain: ``grown`` are k and those between the two, ``last`` is l."""

    grown: tuple[str, ...]
    last: str


def chained_pairs(module: nn.Module, wired: Wiring, layers: Sequence[str] | None) -> list[Pair]:
    """All pairs of layers of a chain, among the named ones if there are names."""
    sources, stored = _sources(wired), stored_names(module)
    following = {
        name: readers[0]
        for name, readers in wired.readers.items()
        if len(readers) == 1 and len(sources[readers[0]]) == 1
    }
    pairs = []
    for first in wired.layers:
        path = [first]
        while path[-1] in following:
            path.append(following[path[-1]])
            ends = [stored.get((name, "weight")) for name in (first, path[-1])]
            # One matrix in both places would be scaled up and down at once.
            if None not in ends and ends[0] != ends[1]:
                pairs.append(Pair(tuple(path[:-1]), path[-1]))
    if layers is not None:
        pairs = [pair for pair in pairs if pair.grown[0] in layers and pair.last in layers]
        named = ", ".join(repr(name) for name in layers)
        require(len(pairs) > 0 or not _computed(stored, layers), _COMPUTED.format(named))
        require(
            len(pairs) > 0,
            f"no two layers among {named} follow each other in a chain, each read by the next alone; name others.",
        )
    require(
        len(pairs) > 0 or not _computed(stored, wired.layers),
        _COMPUTED.format(", ".join(map(repr, _computed(stored, wired.layers)))),
    )
    require(
        len(pairs) > 0,
        f"none of the {len(wired.layers)} weight layers called is read by just one other layer, so no two can be "
        f"rescaled against each other.",
    )
    return pairs


def rescaled(subject: Subject, pairs: Sequence[Pair], factor: float) -> Subject:
    """The networks with each member's own pair rescaled by g: W_k and the biases up to l grow, W_l shrinks."""
    state, stored = subject.parameters | subject.fixed, stored_names(subject.module)
    scales: dict[tuple[str, bool], list[float]] = {}
    for member, pair in enumerate(pairs):
        grown = [stored[pair.grown[0], "weight"]]
        grown += [stored[name, "bias"] for name in pair.grown if (name, "bias") in stored]
        for key in [*((name, True) for name in grown), (stored[pair.last, "weight"], False)]:
            scales.setdefault(key, [1.0] * len(pairs))[member] = factor
    new: dict[str, Tensor] = {}
    for (name, grows), values in scales.items():
        tensor = new.get(name, state[name])
        scale = tensor.new_tensor(values).view(-1, *(1,) * (tensor.ndim - 1))
        # Divided by g rather than multiplied by its rounded inverse.
        new[name] = tensor * scale if grows else tensor / scale
    return subject.with_tensors(new)


def permutable(module: nn.Module, wired: Wiring, layers: Sequence[str] | None) -> tuple[str, ...]:
    """Layers whose units can be exchanged by themselves, or the named ones if they can."""
    known, sources, stored = weight_layers(module), _sources(wired), stored_names(module)

    def can_be(name: str) -> bool:
        readers = wired.readers[name]
        if _computed(stored, (name, *readers)):
            return False
        whole = all(getattr(known[part], "groups", 1) == 1 for part in (name, *readers))
        alone = all(len(sources[reader]) == 1 for reader in readers)
        return bool(readers) and whole and alone and units_of(known[name]) > 1

    for name in layers or ():
        if name not in wired.readers:
            raise Refused(f"layer {name!r} is not called on this batch; choose one that is.")
        unfit = _computed(stored, (name, *wired.readers[name]))
        require(not unfit, _COMPUTED.format(", ".join(map(repr, unfit))))
        require(
            can_be(name),
            f"the units of layer {name!r} cannot be permuted by themselves, as no layer is known to read them and "
            f"nothing else; name another.",
        )
    names = tuple(dict.fromkeys(layers)) if layers is not None else tuple(filter(can_be, wired.layers))
    unfit = _computed(stored, wired.layers)
    require(len(names) > 0 or not unfit, _COMPUTED.format(", ".join(map(repr, unfit))))
    require(
        len(names) > 0,
        f"none of the {len(wired.layers)} weight layers called has units that other layers read by themselves, so "
        f"none can be permuted.",
    )
    return names


def permutation(units: int, stream: torch.Generator) -> Tensor:
    """Draw an order of the units other than their own."""
    while True:
        order = torch.randperm(units, generator=stream)
        if not torch.equal(order, torch.arange(units)):
            return order


def permuted(
    subject: Subject,
    wired: Wiring,
    along: Mapping[str, Sequence[str]],
    orders: Sequence[tuple[str, Tensor]],
) -> Subject:
    """The networks with the units of one layer a member in another order; ``along`` is from ``companions``."""
    state, stored = subject.parameters | subject.fixed, stored_names(subject.module)
    known = weight_layers(subject.module)
    new: dict[str, Tensor] = {}
    for layer in dict.fromkeys(name for name, _ in orders):
        units = next(len(order) for name, order in orders if name == layer)
        rest = torch.arange(units)
        index = torch.stack([order if name == layer else rest for name, order in orders]).to(subject.device)
        own = stored[layer, "weight"]
        rows = units_first(known[layer], new.get(own, state[own]))
        new[own] = units_first(known[layer], _taken(rows, index, 1))
        biases = [stored[layer, "bias"]] if (layer, "bias") in stored else []
        for name in dict.fromkeys([*biases, *along.get(layer, ())]):
            new[name] = _taken(new.get(name, state[name]), index, 1)
        for name, reader in {
            stored[reader, "weight"]: known[reader] for reader in wired.readers[layer]
        }.items():
            # Behind a flattened map each unit is a run of features.
            split = units_first(reader, new.get(name, state[name])).unflatten(2, (units, -1))
            new[name] = units_first(reader, _taken(split, index, 2).flatten(2, 3))
    return subject.with_tensors(new)


def companions(subject: Subject, batch: Batch) -> dict[str, list[str]]:
    """State with one number a unit that is used between a layer and the next one called, by layer."""
    parts, stored = dict(subject.module.named_modules()), stored_names(subject.module)
    known = weight_layers(subject.module)
    order: list[str] = []

    def hook_for(name: str) -> Callable[..., None]:
        return lambda *_: order.append(name)

    def run(model: nn.Module) -> Tensor:
        order.clear()
        with visited(after=[(part, hook_for(name)) for name, part in parts.items()]):
            subject.call(model, batch)
        return torch.zeros(())

    with subject.borrowed(), torch.no_grad():
        subject.map_models(run)
    found: dict[str, list[str]] = {}
    layer, units = "", 0
    for name in order:
        part = parts[name]
        if name in known:
            # Only its first call counts, as in the wiring.
            layer, units = ("", 0) if name in found else (name, units_of(known[name]))
            found.setdefault(name, [])
        elif units:
            own = part.named_parameters(recurse=False)
            found[layer] += [stored[name, key] for key, tensor in own if tensor.shape == (units,)]
            # Of what is not a parameter only statistics follow the units; other constants stay where they are.
            found[layer] += [
                f"{name}.{key}" if name else key
                for key, tensor in part.named_buffers(recurse=False)
                if key in ("running_mean", "running_var") and tensor.shape == (units,)
            ]
    return found


def _taken(tensor: Tensor, index: Tensor, axis: int) -> Tensor:
    """What the index (E, units) takes along an axis, with its own order for each member."""
    shape = [1] * tensor.ndim
    shape[0], shape[axis] = index.shape
    return torch.take_along_dim(tensor, index.view(shape), axis)


def _computed(stored: Mapping[tuple[str, str], str], layers: Sequence[str]) -> list[str]:
    """The layers among these whose weights are no parameters."""
    return [name for name in layers if (name, "weight") not in stored]


def _sources(wired: Wiring) -> dict[str, list[str]]:
    """The layers that each layer reads."""
    return {
        reader: [name for name, readers in wired.readers.items() if reader in readers]
        for reader in wired.layers
    }
