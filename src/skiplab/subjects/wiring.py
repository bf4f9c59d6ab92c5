"""Which layer reads which units: found by running the network once and following its computation graph.

The units of a weight layer (``weight_layers``) are its output features or channels. Layer B reads the
units of layer A if B's input comes from A's output through operations that keep units apart (``operations``), such as
activations, pooling and sums with skips. Where a sum joins several layers of one chain, as in a residual network, the
last of them is the one read: what B sees there is *its* layer's response x_l = f(W x_{l−1}) + x_{l−1}. Anything else
(a transpose, attention, a product with a fixed matrix) ends the search, and the layer's readers are then unknown.

The functions here share Subject's private ways of calling a network: they belong to the same room.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.subjects.hooks import first_argument, visited
from skiplab.subjects.operations import keeps_units_apart
from skiplab.subjects.subject import Batch, Subject
from skiplab.subjects.weight_layers import inputs_of, units_of, weight_layers


def stored_names(module: nn.Module) -> dict[tuple[str, str], str]:
    """Under which name the state keeps each parameter of each part; tied ones are kept under their first."""
    first = {id(tensor): name for name, tensor in module.named_parameters()}
    return {
        (name, key): first[id(tensor)]
        for name, part in module.named_modules()
        for key, tensor in part.named_parameters(recurse=False)
    }


@dataclass(frozen=True)
class Wiring:
    """The weight layers in the order they are called, and for each the layers that read its units."""

    layers: tuple[str, ...]
    readers: Mapping[str, tuple[str, ...]]


def wiring(subject: Subject, batch: Batch) -> Wiring:
    """Run the first member on a batch and follow the graph from each layer's input to the layers it reads.

    A layer that is called more than once counts with its first call.
    """
    parts = weight_layers(subject.module)
    outputs: dict[Any, str] = {}
    inputs: dict[str, Any] = {}

    def hook_for(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, args: Any, kwargs: dict[str, Any], output: Any) -> None:
            if name not in inputs and isinstance(output, Tensor):
                inputs[name] = first_argument(args, kwargs).grad_fn
                outputs[output.grad_fn] = name

        return hook

    def run(model: nn.Module) -> Tensor:
        # The hooks are on the borrowed module for this call alone.
        with visited(after=[(part, hook_for(name)) for name, part in parts.items()]):
            subject.call(model, batch)
        return torch.zeros(())

    lone = _first_member(subject)
    with lone.borrowed(), torch.enable_grad():
        lone.map_models(run)
    layers = tuple(inputs)
    readers: dict[str, list[str]] = {name: [] for name in layers}
    for name in layers:
        sources = _sources(inputs[name], outputs)
        above = {other: _upstream(node, outputs) for node, other in outputs.items() if other in sources}
        for source in sources:
            passed = any(source in above[other] for other in sources if other != source)
            if not passed and inputs_of(parts[name]) % units_of(parts[source]) == 0:
                readers[source].append(name)
    return Wiring(layers, {name: tuple(found) for name, found in readers.items()})


def signals(subject: Subject, batch: Batch, taps: Iterable[tuple[str, str]]) -> dict[tuple[str, str], Tensor]:
    """What layers take or give in their first call, each (E, B, …); a tap is (name, "input" or "output")."""
    parts = dict(subject.module.named_modules())
    seen: dict[tuple[str, str], Tensor] = {}
    wanted = set(taps)

    def hook_for(name: str) -> Callable[..., None]:
        def hook(_: nn.Module, args: Any, kwargs: dict[str, Any], *output: Any) -> None:
            # Before the call for inputs and after it for outputs, and cloned: the layer after may work in place.
            tap = (name, "output" if output else "input")
            if tap in wanted and tap not in seen:
                seen[tap] = (output[0] if output else first_argument(args, kwargs)).clone()

        return hook

    def run(model: nn.Module) -> dict[tuple[str, str], Tensor]:
        seen.clear()
        before, after = (
            [(parts[name], hook_for(name)) for name, side in wanted if side == which]
            for which in ("input", "output")
        )
        with visited(before=before, after=after):
            subject.call(model, batch)
        return dict(seen)

    with subject.borrowed(), torch.no_grad():
        return dict(subject.map_models(run))


def _first_member(subject: Subject) -> Subject:
    """The first member alone, with gradients in all its parameters, the frozen ones too."""
    frozen = {name for name, tensor in subject.module.named_parameters() if tensor.is_floating_point()}
    frozen &= set(subject.fixed)
    state = subject.parameters | {name: subject.fixed[name] for name in frozen}
    return dataclasses.replace(
        subject,
        parameters={name: tensor[:1].detach().clone().requires_grad_() for name, tensor in state.items()},
        fixed={name: tensor[:1] for name, tensor in subject.fixed.items() if name not in frozen},
        size=1,
        batched=False,
    )


def _sources(start: Any, outputs: Mapping[Any, str]) -> set[str]:
    """The nearest layers above a node, through nodes that keep units apart."""
    found: set[str] = set()
    for node in _walk(start, lambda node: node not in outputs and keeps_units_apart(node.name())):
        if node in outputs:
            found.add(outputs[node])
    return found


def _upstream(start: Any, outputs: Mapping[Any, str]) -> set[str]:
    """All layers above a layer's output, itself not counted."""
    return {outputs[node] for node in _walk(start, lambda _: True) if node in outputs and node is not start}


def _walk(start: Any, goes_on: Callable[[Any], bool]) -> list[Any]:
    visited, waiting = [], [start]
    known = set()
    while waiting:
        node = waiting.pop()
        if node is None or node in known:
            continue
        known.add(node)
        visited.append(node)
        if goes_on(node):
            waiting += [parent for parent, _ in node.next_functions]
    return visited
