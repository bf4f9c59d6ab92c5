"""The whole Hessian of a network of linear layers from one sweep a unit, not one a parameter.

Samples do not mix in such a network. A step of the weight W_l[i, a] moves the pre-activation y_l[n, i] of unit i by
x_l[n, a] for sample n, so the sweeps (``forward_rules``) from "unit i moves by one in every sample" serve all weights
into the unit. With ẋ_m[i, n, b] the move of the input of layer m, g_m the gradient in its pre-activation and
r_m[i, n, j] that gradient's move, the block of two layers l ≤ m is

    H[W_l[i, a], W_m[j, b]] = Σ_n x_l[n, a] (r_m[i, n, j] x_m[n, b] + g_m[n, j] ẋ_m[i, n, b]) ,

two products of matrices whose rows are samples; a bias is a weight from a unit that is always 1. For 30 layers of 16
units on 128 inputs that is 500 sweeps instead of 10,292.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skiplab.curvature.output_loss import OutputLoss
from skiplab.curvature.sweeps.bilinear_rules import Affine, Product
from skiplab.curvature.sweeps.forward_rules import Elementwise, Scale, Sum
from skiplab.curvature.sweeps.recording import RecordedStep, Unsupported
from skiplab.curvature.sweeps.workspace import Held, Workspace

# Memory for the sweeps at a time: on a CPU more made it slower; a GPU wants few large steps, and this much takes 30
# layers of 16 units on 2,000 samples in one sweep.
ON_CPU, ON_GPU = 64 << 20, 8 << 30


@dataclass(frozen=True)
class Pass:
    """One network's recorded pass on one batch, with values and gradients kept, each with a lane of its own."""

    steps: Sequence[RecordedStep]
    active: set[int]
    output: int
    values: Mapping[int, Tensor]
    aux: Mapping[int, Any]
    gradients: Mapping[int, Tensor]
    head: OutputLoss


@dataclass(frozen=True)
class Layer:
    """A linear layer with weights or biases that count: its input (N, features), with a 1 where biases do.

    Its parameters start at ``start`` in a matrix ordered by layer, unit and feature.
    """

    step: RecordedStep
    x: Tensor
    weights: int
    units: int
    start: int

    @property
    def features(self) -> int:
        """Numbers of parameters a unit."""
        return self.x.shape[1]

    @property
    def place(self) -> slice:
        """Where its parameters are."""
        return slice(self.start, self.start + self.units * self.features)


@dataclass(frozen=True)
class Group:
    """Layers of one shape whose units (some, if there is one layer) are moved in one sweep."""

    layers: list[Layer]
    units: slice

    @property
    def width(self) -> int:
        """Units of a layer that are moved."""
        return self.units.stop - self.units.start


def unit_matrix(
    network: Pass, leaves: Mapping[str, int], names: Sequence[str], shapes: Sequence[torch.Size], room: int
) -> Tensor:
    """The Hessian (P, P) in float64 in the parameters' order, or Unsupported where samples or layers may mix.

    ``room`` is about how many bytes the sweeps may take at a time.
    """
    layers = linear_layers(network, {leaves[name] for name in names})
    total = sum(shape.numel() for shape in shapes)
    like = network.head.gradient
    matrix = torch.zeros(total, total, dtype=torch.float64, device=like.device)
    sweeps = _Sweeps(network, layers, matrix, room)
    for group in sweeps.groups():
        sweeps.run(group)
    for layer in layers:
        own = matrix[layer.place, layer.place]
        own.copy_((own + own.mT).div_(2))  # two roundings of the same numbers
    order = _order(layers, leaves, names, shapes).to(like.device)
    return matrix if bool((order.diff() == 1).all()) else matrix[order][:, order]


def linear_layers(network: Pass, chosen: set[int]) -> list[Layer]:
    """The linear layers that hold the chosen values, in the order of the pass."""
    layers: list[Layer] = []
    start = 0
    used: set[int] = set()
    for step in network.steps:
        if not isinstance(step.rule, Affine | Elementwise | Scale | Sum | Product):
            raise Unsupported(type(step.rule).__name__)
        own = [slot for slot in step.inputs if slot in chosen]
        if used.intersection(own) or (own and not isinstance(step.rule, Affine)) or step.inputs[0] in own:
            raise Unsupported("a parameter that is not a linear layer's own")
        used.update(own)
        if not own:
            continue
        inputs, weight, bias = step.inputs
        assert inputs is not None
        assert weight is not None
        x = network.values[inputs]
        if x.ndim != 3:
            raise Unsupported("a linear layer on more than rows of samples")
        (x,) = x
        parts = [x[:, :0] if weight not in chosen else x]
        if bias in chosen:
            parts.append(x.new_ones(len(x), 1))
        features = torch.cat(parts, 1)
        units = network.values[weight].shape[1]
        layers.append(Layer(step, features, parts[0].shape[1], units, start))
        start += units * features.shape[1]
    return layers


class _Sweeps:
    """Sweeps over one network, and the matrix that they fill."""

    def __init__(self, network: Pass, layers: list[Layer], matrix: Tensor, room: int) -> None:
        self.network, self.layers, self.matrix, self.room = network, layers, matrix, room
        self.space = Workspace(reuse=matrix.device.type == "cpu")
        self.by_step = {layer.step.output: layer for layer in layers}
        self.curved = {slot for step in network.steps if step.rule.curved for slot in step.inputs}

    def groups(self) -> Iterator[Group]:
        """All units of all layers, as many at a time as there is room for."""
        moves = sum(
            layer.x.nbytes // layer.features * (layer.features + layer.units) for layer in self.layers
        )
        most = max(1, self.room // max(moves, 1))
        together: list[Layer] = []
        for layer in self.layers:
            alike = together and (together[0].units, together[0].features) == (layer.units, layer.features)
            if together and not (alike and (len(together) + 1) * layer.units <= most):
                yield Group(together, slice(0, together[0].units))
                together = []
            if layer.units > most:
                for first in range(0, layer.units, most):
                    yield Group([layer], slice(first, min(first + most, layer.units)))
            else:
                together.append(layer)
        if together:
            yield Group(together, slice(0, together[0].units))

    def run(self, group: Group) -> None:
        """Fill the rows of a group's parameters from its first layer on, and the columns that mirror them."""
        steps = list(self.network.steps)
        while steps[0] is not group.layers[0].step:
            steps.pop(0)
        inputs = torch.stack([layer.x for layer in group.layers])
        with torch.no_grad():
            self._backwards(steps, group, inputs, self._forwards(steps, group))
        self.space.reset()

    def _forwards(self, steps: list[RecordedStep], group: Group) -> Held:
        network, directions = self.network, Held(self.space)
        last = {slot: step.output for step in steps for slot in step.inputs}
        numbers = {layer.step.output: number for number, layer in enumerate(group.layers)}
        for step in steps:
            dx = [None if slot is None else directions.get(slot) for slot in step.inputs]
            moved = None
            if any(d is not None for d in dx):
                x = [None if slot is None else network.values.get(slot) for slot in step.inputs]
                moved = step.rule.tangent(x, network.aux[step.output], dx, self.space)
            if step.output in numbers:
                moved = self._with_own(moved, group, numbers[step.output])
            if moved is not None:
                directions[step.output] = moved
            for slot in step.inputs:
                if slot is not None and slot not in self.curved and last[slot] == step.output:
                    directions.discard(slot)
        return directions

    def _with_own(self, moved: Tensor | None, group: Group, number: int) -> Tensor:
        """Move each unit of the group's layer by one, in lanes of their own that nothing moved before."""
        layer = group.layers[number]
        if moved is None:
            moved = layer.x.new_zeros(len(group.layers) * group.width, len(layer.x), layer.units)
        own = slice(number * group.width, (number + 1) * group.width)
        ones = torch.eye(layer.units, dtype=moved.dtype, device=moved.device)[group.units]
        moved[own] = ones[:, None]
        return moved

    def _backwards(self, steps: list[RecordedStep], group: Group, inputs: Tensor, directions: Held) -> None:
        network, turned = self.network, Held(self.space)
        moved = directions.get(network.output)
        curvature = None if moved is None else network.head.product(moved)
        if curvature is not None:
            turned[network.output] = curvature
        for step in reversed(steps):
            g, r = network.gradients.get(step.output), turned.get(step.output)
            dx = [None if slot is None else directions.get(slot) for slot in step.inputs]
            layer = self.by_step.get(step.output)
            if layer is not None:
                self._fill(group, inputs, layer, r, dx[0], g)
            if step is steps[0]:
                break
            if g is not None or r is not None:
                x = [None if slot is None else network.values.get(slot) for slot in step.inputs]
                wanted = [slot in network.active for slot in step.inputs]
                if isinstance(step.rule, Affine):
                    wanted[1:] = [False, False]
                found = step.rule.turned(x, network.aux[step.output], dx, g, r, wanted, self.space)
                for slot, tensor in zip(step.inputs, found, strict=True):
                    if slot is None or tensor is None:
                        continue
                    self.space.hold(tensor)
                    turned[slot] = self.space.add(turned[slot], tensor) if slot in turned else tensor
                    self.space.drop(tensor)
            turned.discard(step.output)
            directions.discard(step.output)

    def _fill(
        self,
        group: Group,
        inputs: Tensor,
        layer: Layer,
        r: Tensor | None,
        dx: Tensor | None,
        g: Tensor | None,
    ) -> None:
        """The blocks of the group's layers up to this one with this one; see the module."""
        before = sum(each.start <= layer.start for each in group.layers)
        lanes, width, features = before * group.width, group.width, inputs.shape[2]
        first = group.layers[0].start + group.units.start * features
        rows = slice(first, first + lanes * features)
        block = self.matrix[rows, layer.place].unflatten(0, (before, width, features))
        block = block.unflatten(-1, (layer.units, layer.features))
        r = None if r is None else _samples_first(r[:lanes], before)
        dx = None if dx is None or g is None or not layer.weights else _samples_first(dx[:lanes], before)
        size = before * len(layer.x) * max(layer.features, layer.units) * layer.x.element_size()
        piece = max(1, self.room // size)
        for start in range(0, features, piece):
            x = inputs[:before, :, start : start + piece]
            part = block[:, :, start : start + piece]
            if r is not None:
                found = torch.bmm(_outer(x, layer.x).mT, r)
                sizes = (x.shape[2], layer.features, width, layer.units)
                part.copy_(found.unflatten(2, sizes[2:]).unflatten(1, sizes[:2]).permute(0, 3, 1, 4, 2))
            if dx is not None:
                assert g is not None
                found = torch.bmm(_outer(x, g).mT, dx)
                sizes = (x.shape[2], layer.units, width, layer.weights)
                cross = found.unflatten(2, sizes[2:]).unflatten(1, sizes[:2]).permute(0, 3, 1, 2, 4)
                part[..., : layer.weights].add_(cross)
        off = slice(
            first, min(rows.stop, layer.start)
        )  # the layer's block with itself is made symmetric at the end
        if off.stop > off.start:
            self.matrix[layer.place, off] = self.matrix[off, layer.place].mT


def _samples_first(moves: Tensor, layers: int) -> Tensor:
    """(layers · units, N, f) → (layers, N, units · f)."""
    return moves.unflatten(0, (layers, -1)).transpose(1, 2).flatten(2)


def _outer(x: Tensor, y: Tensor) -> Tensor:
    """All products of two features of a sample: (S, N, a) and (…, N, b) → (S, N, a·b)."""
    return (x[..., None] * y[..., None, :]).flatten(2)


def _order(
    layers: list[Layer], leaves: Mapping[str, int], names: Sequence[str], shapes: Sequence[torch.Size]
) -> Tensor:
    """Where each parameter, in the order of the names, is in the matrix ordered by layers."""
    places: dict[int, Tensor] = {}
    rest = sum(layer.units * layer.features for layer in layers)
    for layer in layers:
        own = torch.arange(layer.place.start, layer.place.stop).view(layer.units, layer.features)
        _, weight, bias = layer.step.inputs
        assert weight is not None
        places[weight] = own[:, : layer.weights]
        if bias is not None:
            places[bias] = own[:, layer.weights :]
    parts = []
    for name, shape in zip(names, shapes, strict=True):
        count = shape.numel()
        place = places.get(leaves[name])
        if place is None:  # a parameter that the loss does not meet
            place = torch.arange(rest, rest + count)
            rest += count
        parts.append(place.flatten())
    return torch.cat(parts)
