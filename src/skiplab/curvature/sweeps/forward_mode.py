"""Hessian products of ordinary networks by hand: one recorded pass, then Pearlmutter's two sweeps.

The pass of one network on one batch is recorded (``recording``). Values and gradients of every member are then
computed once and kept; a product needs only the sweep of directions forwards and of the gradient's derivative
backwards (``forward_rules`` has the equations), for many vectors or members at a time, as batched matrix
products. A network with an operation for which there is no rule, or a loss that is not a criterion of the
output, ends in ``Unsupported`` and belongs to ``double_backward``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from skiplab.curvature.output_loss import OutputLoss, output_loss
from skiplab.curvature.sweeps.recording import RecordedStep, Tape, Unsupported
from skiplab.curvature.sweeps.rectified_rule import RectifiedStep, rectified_steps, worth_it
from skiplab.curvature.sweeps.unit_sweeps import Pass, unit_matrix
from skiplab.curvature.sweeps.workspace import Held, Workspace
from skiplab.ensembles.layout import ROW_MULTIPLE
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, target_of

Slots = dict[int, Tensor]


class ForwardMode:
    """Products with the curvature of one batch's loss, for members that are computed together.

    ``names`` are the parameters that a vector stands for, in its order; ``gauss_newton`` leaves out the second
    derivatives of the network.
    """

    name = "forward mode"

    def __init__(
        self,
        subject: Subject,
        batch: Batch,
        names: tuple[str, ...],
        *,
        gauss_newton: bool = False,
        space: Workspace | None = None,
    ) -> None:
        if subject.criterion is None:
            raise Unsupported("a loss function of one's own")
        self._subject, self._batch, self._names = subject, batch, names
        self._gauss_newton, self._space, self._keep = gauss_newton, space or Workspace(), True
        self._tape = tape = Tape.of(subject, batch)
        self._active = {tape.leaves[name] for name in names}
        self._steps: list[RecordedStep] = []
        for step in tape.steps:
            if self._active.intersection(step.inputs):
                self._active.add(step.output)
                self._steps.append(step)
        # What the sweeps of a product go through; values and gradients are computed by the recorded steps.
        self._sweep = self._steps
        if worth_it(subject.parameters[names[0]]):
            self._sweep = rectified_steps(self._steps, tape.output)
        self._done = _last_uses(self._sweep)
        self._state: _Kept | None = None

    def losses(self) -> Tensor:
        """The loss of every member on the batch, (E,)."""
        return self._current().head.losses

    def gradient(self) -> Tensor:
        """The gradient of every member's loss on the batch, (E, P)."""
        return self._packed(self._current().gradients, self._subject.size)

    def product(self, vectors: Tensor) -> Tensor:
        """Multiply vectors (L, P): one for each member, or any number for a single network."""
        return self._swept(self._moved(self._unpacked(vectors)), len(vectors))

    def fixed_product(self, vectors: Tensor) -> Tensor:
        """The same by the same kernels whatever the vectors hold, in memory of its own, as ``replayed`` needs it."""
        shared, self._space = self._space, Workspace()
        try:
            return self._swept(self._unpacked(vectors), len(vectors))
        finally:
            self._space = shared

    def _swept(self, moved: Slots, lanes: int) -> Tensor:
        state, space = self._current(), self._space
        try:
            with torch.no_grad():
                turned = self._backwards(self._forwards(moved, state), state)
                return self._packed(turned, lanes)
        finally:
            space.reset()

    def _forwards(self, moved: Slots, state: _Kept) -> Held:
        directions = Held(self._space)
        directions.update(moved)
        for step in self._sweep:
            dx = _at(directions, step)
            if any(d is not None for d in dx):
                x = _at(state.values, step)
                directions[step.output] = step.rule.tangent(x, state.aux[step.output], dx, self._space)
            for slot in self._done.get(step.output, ()):
                directions.discard(slot)
        return directions

    def _backwards(self, directions: Held, state: _Kept) -> Held:
        turned = Held(self._space)
        moved = directions.get(self._tape.output)
        curvature = None if moved is None else state.head.product(moved)
        if curvature is not None:
            turned[self._tape.output] = curvature
        for step in reversed(self._sweep):
            g = None if self._gauss_newton else state.gradients.get(step.bent)
            r = turned.get(step.output)
            if g is not None or r is not None:
                x, dx = _at(state.values, step), _at(directions, step)
                aux, wanted = state.aux[step.output], self._wanted(step)
                _collect(turned, step, step.rule.turned(x, aux, dx, g, r, wanted, self._space), self._space)
            turned.discard(step.output)
            directions.discard(step.output)
        return turned

    def matrix(self, room: int) -> Tensor:
        """The whole matrix (P, P) of a single network, in float64, where ``unit_sweeps`` has a way to it."""
        if self._subject.size != 1:
            raise Unsupported("several networks at once")
        state = self._current()
        gradients = {} if self._gauss_newton else state.gradients
        shapes = [self._subject.parameters[name].shape[1:] for name in self._names]
        network = Pass(
            self._steps, self._active, self._tape.output, state.values, state.aux, gradients, state.head
        )
        return unit_matrix(network, self._tape.leaves, self._names, shapes, room)

    def nbytes(self) -> int:
        """Memory that the members' values take; the directions of a vector take about as much as one member's."""
        state = self._current()
        return sum(tensor.nbytes for tensor in (*state.values.values(), *state.gradients.values()))

    def forget(self) -> None:
        """Keep no values from now on; each product computes them again."""
        self._state, self._keep = None, False

    def _current(self) -> _Kept:
        if self._state is not None:
            return self._state
        state = self._computed()
        if self._keep:
            self._state = state
        return state

    def _computed(self) -> _Kept:
        tape, subject = self._tape, self._subject
        tensors = subject.parameters | subject.fixed
        values = {slot: tensors[name] for name, slot in tape.leaves.items()} | tape.constants
        aux: dict[int, Any] = {}
        with torch.no_grad():
            for step in tape.steps:
                values[step.output], aux[step.output] = step.rule.primal(_at(values, step))
        output = values[tape.output]
        output = output.expand(subject.size, *output.shape[1:])
        assert subject.criterion is not None
        head = output_loss(subject.criterion, output, target_of(self._batch))
        gradients: Slots = {tape.output: head.gradient} if tape.output in self._active else {}
        plain = Workspace(reuse=False)
        with torch.no_grad():
            for step in reversed(self._steps):
                g = gradients.get(step.output)
                if g is not None:
                    x = _at(values, step)
                    found = step.rule.cotangent(x, aux[step.output], g, self._wanted(step), plain)
                    _collect(gradients, step, found, plain)
        for step in self._sweep:
            if isinstance(step, RectifiedStep):
                aux[step.output] = (aux[step.output][0].bool(), None)  # a byte per unit is all that is read
        read = {slot for step in self._steps if step.rule.reads_values for slot in step.inputs}
        needed = {step.output for step in self._steps if step.rule.curved} | set(tape.leaves.values())
        return _Kept(
            {slot: value for slot, value in values.items() if slot in read},
            {step.output: aux[step.output] for step in self._steps},
            {slot: gradient for slot, gradient in gradients.items() if slot in needed},
            head,
        )

    def _wanted(self, step: RecordedStep) -> list[bool]:
        return [slot in self._active for slot in step.inputs]

    def _unpacked(self, vectors: Tensor) -> Slots:
        count = vectors.shape[1]
        if vectors.is_cuda:  # rows of whole lines: batched products of other lanes take twice as long
            vectors = F.pad(vectors, (0, -count % ROW_MULTIPLE))[:, :count]
        parts = vectors.split([self._subject.parameters[name][0].numel() for name in self._names], dim=1)
        return {
            self._tape.leaves[name]: part.view(len(vectors), *self._subject.parameters[name].shape[1:])
            for name, part in zip(self._names, parts, strict=True)
        }

    def _moved(self, parts: Slots) -> Slots:
        """Where all vectors vanish on a layer, as basis vectors do, the sweeps pass it by."""
        moved = torch.stack([part.any() for part in parts.values()]).tolist()
        return {slot: part for (slot, part), any_moved in zip(parts.items(), moved, strict=True) if any_moved}

    def _packed(self, found: Slots, lanes: int) -> Tensor:
        parts = []
        for name in self._names:
            like = self._subject.parameters[name]
            gradient = found.get(self._tape.leaves[name])
            zero = like.new_zeros(lanes, like[0].numel())
            parts.append(zero if gradient is None else gradient.reshape(lanes, -1))
        return torch.cat(parts, dim=1)


@dataclass(frozen=True)
class _Kept:
    """What is kept of the members' pass: inputs that rules read, their ``aux``, gradients, the loss."""

    values: Slots
    aux: dict[int, Any]
    gradients: Slots
    head: OutputLoss


def _at(slots: Slots, step: RecordedStep) -> list[Tensor | None]:
    return [None if slot is None else slots.get(slot) for slot in step.inputs]


def _collect(slots: Slots, step: RecordedStep, found: list[Tensor | None], space: Workspace) -> None:
    for slot, tensor in zip(step.inputs, found, strict=True):
        if slot is None or tensor is None:
            continue
        if slot in slots:  # not in place: either may also be held elsewhere
            space.hold(tensor)
            slots[slot] = space.add(slots[slot], tensor)
            space.drop(tensor)
        else:
            slots[slot] = tensor


def _last_uses(steps: list[RecordedStep]) -> dict[int, list[int]]:
    """After which step a value's direction is not needed again: neither by a later step nor by a cross term."""
    curved = {slot for step in steps if step.rule.curved for slot in step.inputs}
    last = {slot: step.output for step in steps for slot in step.inputs if slot is not None}
    found: dict[int, list[int]] = {}
    for slot, step in last.items():
        if slot not in curved:
            found.setdefault(step, []).append(slot)
    return found
