"""Watching nonlinearities while a network runs, and sums over batches of what they do; see ``saturation``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from skiplab.checks import require
from skiplab.measurements.attention_rows import ATTENTIONS, attention_rows, softmax_rows
from skiplab.measurements.recurrent_gates import RECURRENT, gates
from skiplab.measurements.tallies import lies_in
from skiplab.subjects import Subject
from skiplab.subjects.activation_calls import limits, place_of, rectifies
from skiplab.subjects.batches import Batch
from skiplab.subjects.following import FRESH, Call, Followed, Follower
from skiplab.subjects.hooks import first_argument, visited
from skiplab.subjects.untouched import PlainTensors
from skiplab.subjects.weight_layers import weight_layers

FLAT = 0.05  # of the largest slope; ours: |tanh| > .975
SOFTMAX = frozenset({"softmax", "log_softmax"})
MOVES = frozenset({"permute", "transpose", "swapaxes", "swapdims", "movedim", "moveaxis", "t", "T", "mT"})


def _beyond(low: float, high: float) -> Callable[[Tensor], Tensor]:
    return lambda y: (y <= low) | (y >= high)


# Where the slope is below FLAT of the largest, told from the output: 1 − y², 4y(1 − y) = 1 − (2y − 1)², (1 − |y|)².
BOUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": lambda y: y.abs() > (1 - FLAT) ** 0.5,
    "sigmoid": lambda y: (2 * y - 1).abs() > (1 - FLAT) ** 0.5,
    "softsign": lambda y: y.abs() > 1 - FLAT**0.5,
    "hardsigmoid": _beyond(0.0, 1.0),
}
S = TypeVar("S", bound="ActivationSums")
NOTHING = torch.tensor(torch.nan, dtype=torch.float64)


class ActivationSums:
    """Sums over batches of what one call of a nonlinearity does."""

    kind: str
    behind = ""  # the weight layer that is called last before it

    @property
    def shares(self) -> tuple[Tensor, Tensor, Tensor]:
        """Saturated, never active, always active."""
        raise NotImplementedError


class _Counted(ActivationSums):
    """Numbers, or rows of a softmax, of which some are saturated."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.flat: Any = 0.0
        self.count: Any = 0.0

    def add(self, flat: Tensor, count: Tensor) -> None:
        """Take in how many are saturated, NaN where some are not finite, of how many."""
        self.flat, self.count = self.flat + flat.double(), self.count + count.double()

    @property
    def shares(self) -> tuple[Tensor, Tensor, Tensor]:
        return self.flat / self.count, NOTHING, NOTHING


class _Units(ActivationSums):
    """Units of a rectifier: the largest and the smallest number that each was given."""

    kind = "rectifier"

    def __init__(self) -> None:
        self.ends: tuple[Tensor, Tensor] | None = None

    def add(self, low: Tensor, high: Tensor) -> None:
        """Take in the ends of a batch, (units,)."""
        if self.ends is not None:
            before = self.ends[0].numel()
            require(
                before == low.numel(),
                f"a rectifier has {before} units in one batch and {low.numel()} in another; measure them one by one.",
            )
            low, high = torch.minimum(self.ends[0], low), torch.maximum(self.ends[1], high)
        self.ends = low, high

    @property
    def shares(self) -> tuple[Tensor, Tensor, Tensor]:
        assert self.ends is not None
        low, high = self.ends
        if not bool((low.isfinite() & high.isfinite()).all()):
            return NOTHING, NOTHING, NOTHING
        return NOTHING, (high <= 0).double().mean(), (low > 0).double().mean()


class ActivationWatcher(Follower):
    """Looks at nonlinearities while they are called; a note is the axis of units, from the end, or 0 if unknown."""

    def __init__(
        self,
        module: nn.Module,
        layers: Sequence[str] | None,
        foreign: Mapping[str, nn.Module],
        rows: dict[str, ActivationSums],
    ) -> None:
        super().__init__()
        self.parts = dict(module.named_modules())
        self.layers, self.foreign, self.rows = layers, foreign, rows
        self.weight_layers = frozenset(weight_layers(module))
        self.behind = ""
        self.met: Counter[str] = Counter()
        self.finite = True

    def run(self, subject: Subject, batch: Batch) -> bool:
        """Whether all numbers that were looked at are finite."""

        def enter(name: str) -> Callable[..., None]:
            def look(_: nn.Module, args: Any, kwargs: Any) -> None:
                x = first_argument(args, kwargs)
                if lies_in(name, self.layers):
                    with PlainTensors():
                        self._rectify(name, x.detach().as_subclass(Tensor), getattr(x, "note", 0))

            return look

        def run(model: nn.Module) -> Tensor:
            before = [(part, enter(name)) for name, part in self.foreign.items()]
            with visited(before=before), self.watching(model):
                subject.call(model, batch)
            return torch.zeros(())

        with subject.borrowed(), torch.no_grad():
            subject.map_models(run)
        self.output = None
        return self.finite

    def source(self, value: Tensor) -> int:
        return 0

    def follow(self, call: Call) -> Any:
        if call.name in FRESH:
            return None
        if call.scope not in self.foreign and lies_in(call.scope, self.layers):
            self._look(call)
        if call.scope in self.weight_layers:
            self.behind = call.scope
        if not isinstance(call.outcome, Tensor):
            return [0] * len(call.outcome)
        return _axis(call)

    def _look(self, call: Call) -> None:
        name = call.name
        if rectifies(call):
            self._rectify(place_of(call, self.parts), call.taken[0], call.followed[0].note)
        elif name in BOUNDED or name == "hardtanh":
            flat = _beyond(*limits(call)) if name == "hardtanh" else BOUNDED[name]
            self._count(place_of(call, self.parts), "bounded", *_flat(flat, call.outcome))
        elif name in SOFTMAX:
            self._count(place_of(call, self.parts), "softmax", *softmax_rows(call))
        elif name in ATTENTIONS:
            self._count(place_of(call, self.parts), "softmax", *attention_rows(call))
        elif name in RECURRENT:
            for gate, function, given in gates(call):
                self._gate(f"{call.scope}: {gate}" if call.scope else gate, call.scope, function, given)

    def _gate(self, name: str, layer: str, function: str, given: Tensor) -> None:
        """A gate has one row for all steps, also of a cell that is called once per step."""
        self.met[name] = 0
        self.behind, before = layer, self.behind
        if function == "relu":
            self._rectify(name, given, -1)
        else:
            y = getattr(torch, function)(given)
            self._count(name, "bounded", *_flat(BOUNDED[function], y))
        self.behind = before

    def _row(self, name: str, fresh: S) -> S:
        """The sums of this call of an activation, the same in every batch."""
        self.met[name] += 1
        row = self.rows.setdefault(name if self.met[name] == 1 else f"{name}#{self.met[name]}", fresh)
        assert isinstance(row, type(fresh))
        row.behind = row.behind or self.behind
        return row

    def _count(self, name: str, kind: str, flat: Tensor, count: Tensor) -> None:
        self._row(name, _Counted(kind)).add(flat, count)
        self.finite &= bool(flat.isfinite())

    def _rectify(self, name: str, x: Tensor, axis: int) -> None:
        if x.numel() == 0 or x.is_complex():
            return
        row = self._row(name, _Units())
        if axis == 0 or -axis > x.ndim:  # maps have units as channels, all else last
            axis = -1 if x.ndim < 4 else 1 - x.ndim
        others = [other for other in range(x.ndim) if other != x.ndim + axis]
        low, high = (x.amin(others), x.amax(others)) if others else (x, x)
        row.add(low, high)
        self.finite &= bool((low.isfinite() & high.isfinite()).all())


def _flat(edges: Callable[[Tensor], Tensor], y: Tensor) -> tuple[Tensor, Tensor]:
    """How many numbers are beyond the edges, NaN if a number is, and how many there are."""
    poison = 0 * y.sum(dtype=torch.promote_types(y.dtype, torch.float32))
    return edges(y).sum() + poison, torch.tensor(y.numel())


def _axis(call: Call) -> int:
    """Where the units of a result are: as its layer has them, and as long as they stay where they are."""
    name, outcome = call.name, call.outcome
    if name.startswith("conv") and name[-2:-1].isdigit():
        return -1 - int(name[-2])
    if name in ("linear", "layer_norm", "rms_norm"):
        return -1
    if name in ("batch_norm", "instance_norm", "group_norm"):
        return 1 - outcome.ndim
    given: Followed = call.followed[0]
    axis: int = given.note
    if name in MOVES or axis == 0 or -axis > outcome.ndim or given.shape[axis] != outcome.shape[axis]:
        return 0
    return axis
