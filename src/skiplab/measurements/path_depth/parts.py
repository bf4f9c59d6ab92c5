"""Activities split by path length in one forward pass, gates held at what the pass itself makes of them.

Every activity x of a network carries its parts along the powers of t (``formal``), which add up to it. How a call to
torch splits its result (``follow``):

- functions that are affine in the activities work on every part, f(x_r) − f(0), and f(0) starts a path there;
- activations multiply parts by f(x)/x, which for a ReLU is 0 or 1;
- normalisation divides by its deviation, a constant, and subtracts from every part that part's own mean; what a
  mean over the batch leaves of the running mean starts a path, as do shifts;
- softmax, sigmoid, squares and other statistics are held fixed: they may weigh activities, not be ones.

Whatever else is met is opaque, and an output made of it is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.measurements.path_depth import functions, normalisation
from skiplab.measurements.path_depth.formal import Formal
from skiplab.subjects.following import FRESH, Call, Followed, Follower
from skiplab.torch_private import tree_map


@dataclass(frozen=True)
class Parts:
    """An activity's parts (size, …); ``activated`` says that they come out of an activation."""

    values: Tensor
    activated: bool = False


@dataclass(frozen=True)
class Fixed:
    """A gate or a statistic: it depends on the input and is held at its value."""


@dataclass(frozen=True)
class Opaque:
    """Something that cannot be split, and the function that made it."""

    made_by: str


FIXED = Fixed()


class PathFollower(Follower):
    """Splits what a network computes by path length; ``branches`` are the calls that add a branch, with its side.

    ``counted`` names modules whose output counts as a branch although nothing passes them by. ``live_means`` lets
    gradients go through the means that batch normalisation takes over a batch.
    """

    def __init__(
        self, formal: Formal, branches: Mapping[int, int], counted: Collection[str], *, live_means: bool
    ) -> None:
        super().__init__()
        self.formal, self.branches, self.counted = formal, branches, counted
        self.live_means = live_means

    def source(self, value: Tensor) -> Parts:
        return Parts(self.constant(value))

    def constant(self, value: Tensor) -> Tensor:
        """Parts of what starts here."""
        rest = value.new_zeros((self.formal.size - 1, *value.shape))
        return torch.cat([value[None], rest])

    def leave(self, name: str, tensor: Followed) -> None:
        if name in self.counted:
            note = tensor.note
            if not isinstance(note, Parts):
                raise Refused(f"layer {name!r} returns what has no paths; leave it out of counted.")
            tensor.note = Parts(self.formal.times(note.values), note.activated)

    def follow(self, call: Call) -> Any:
        name = call.name
        notes = [each.note for each in call.followed]
        active = [note for note in notes if isinstance(note, Parts)]
        if name in FRESH or not _differentiable(call.outcome):
            return None
        if name in functions.FREEZING or all(isinstance(note, Fixed) for note in notes):
            # A function that can be either is an activation of activities, a gate of anything else.
            return tree_map(lambda _: FIXED, call.outcome)
        if not active or any(isinstance(note, Opaque) for note in notes):
            return tree_map(lambda _: self._opaque(call, notes), call.outcome)
        mixed = len(active) < len(notes)
        if name in functions.ACTIVATIONS and not mixed:
            return Parts(self._activated(call, active[0].values), activated=True)
        if name in normalisation.RULES and not mixed:
            return Parts(normalisation.RULES[name](call, active[0].values, self.constant, self.live_means))
        if name in functions.SPECIAL:
            special = functions.SPECIAL[name](call, _parts_of)
            if special is not None:  # behind it, weights of an attention
                return Parts(special) if isinstance(call.outcome, Tensor) else (Parts(special), FIXED)
            return tree_map(lambda _: self._opaque(call, notes), call.outcome)
        if name in functions.BILINEAR:
            return self._product(call, active, notes)
        if name in functions.AFFINE and not mixed:
            return self._affine(call)
        return tree_map(lambda _: self._opaque(call, notes), call.outcome)

    def _opaque(self, call: Call, notes: list[Any]) -> Any:
        if call.name in functions.ACTIVATIONS:  # a gate written out, as GELU's tanh
            return FIXED
        before = next((note for note in notes if isinstance(note, Opaque)), None)
        return before or Opaque(f"{call.name} in {call.scope or 'the network itself'}")

    def _activated(self, call: Call, parts: Tensor) -> Tensor:
        (x, *rest), kwargs = call.values
        with torch.no_grad():
            none = call.function(torch.zeros_like(x), *rest, **kwargs)
            gate = torch.where(x == 0, torch.zeros_like(x), (call.outcome - none) / x)
        return parts * gate + self.constant(none)

    def _product(self, call: Call, active: list[Parts], notes: list[Any]) -> Any:
        if len(active) == 1:
            return self._affine(call)
        gates = [note for note in active if note.activated]
        # As in gated linear units: what comes out of an activation is the gate.
        if len(active) == 2 == len(notes) and len(gates) == 1:
            return self._affine(call, held=gates[0])
        return tree_map(lambda _: self._opaque(call, notes), call.outcome)

    def _affine(self, call: Call, held: Parts | None = None) -> Any:
        """Split what is affine in all activities together: f(0) and f(x_r) − f(0)."""
        branch = call.followed[self.branches[call.number]] if call.number in self.branches else None
        stacks: list[Tensor] = []
        template = tree_map(lambda leaf: self._slot(leaf, branch, held, stacks), (call.args, call.kwargs))

        def function(*parts: Tensor) -> Any:
            args, kwargs = tree_map(
                lambda leaf: parts[leaf.place] if isinstance(leaf, _Slot) else leaf, template
            )
            return functions.out_of_place(call)(*args, **kwargs)

        zeros = [torch.cat([stack, torch.zeros_like(stack[:1])]) for stack in stacks]
        mapped = torch.vmap(function, randomness="same")(*zeros)

        def split(every: Tensor) -> Tensor:
            parts, nothing = every[:-1], every[-1:]
            # The first keeps f(0), which starts here.
            return torch.cat([parts[:1], parts[1:] - nothing])

        activated = call.name in functions.CARRIES and all(
            note.activated for note in (each.note for each in call.followed) if isinstance(note, Parts)
        )
        return tree_map(lambda each: Parts(split(each), activated), mapped)

    def _slot(self, leaf: Any, branch: Followed | None, held: Parts | None, stacks: list[Tensor]) -> Any:
        if not isinstance(leaf, Followed):
            return leaf
        if not isinstance(leaf.note, Parts) or leaf.note is held:
            return leaf.detach().as_subclass(Tensor)
        parts = leaf.note.values
        stacks.append(self.formal.times(parts) if leaf is branch else parts)
        return _Slot(len(stacks) - 1)


@dataclass(frozen=True)
class _Slot:
    """Stands for an activity in a call's arguments."""

    place: int


def _parts_of(tensor: Any) -> Tensor | None:
    """The parts of an activity, or None of anything else."""
    note = tensor.note if isinstance(tensor, Followed) else None
    return note.values if isinstance(note, Parts) else None


def _differentiable(outcome: Any) -> bool:
    first = outcome if isinstance(outcome, Tensor) else outcome[0]
    return isinstance(first, Tensor) and first.is_floating_point()


def split_output(
    follower: PathFollower, model: nn.Module, call_network: Callable[[nn.Module], Any]
) -> tuple[Tensor, Tensor]:
    """The network's output and its parts (size, …), or a refusal that names what could not be split."""
    with follower.watching(model):
        call_network(model)
    # The follower lets go of what it found: the two would otherwise keep each other, on a GPU for long.
    output, follower.output = follower.output, None
    note = output.note if isinstance(output, Followed) else None
    if isinstance(note, Opaque):
        raise Refused(
            f"paths cannot be followed through {note.made_by}; measure the part of the network that has none."
        )
    if output is None or not isinstance(note, Parts):
        raise Refused(
            "the network's output does not come from its input by paths; pass a network whose does."
        )
    value = output.detach().as_subclass(Tensor)
    return value, note.values
