"""Activations that no longer respond: one row per call of a nonlinearity, as a module or as a function.

Calls are found by following the pass, so ``torch.tanh`` in a forward counts as ``nn.Tanh`` does. A row is named after
the module that is the activation, else after the module in whose forward it is called and the function ("blocks.3:
tanh"). What *saturated* means depends on the ``kind``:

- ``bounded`` (tanh, sigmoid, softsign, hardtanh, hardsigmoid): the share of numbers at which the slope is below ``FLAT``
  of the largest slope, at both ends together. There a gradient shrinks to less than a twentieth in one layer;
- ``softmax`` (attention's too): the share of rows whose largest weight is above ``SHARP``, among rows with more than one
  entry that is not masked. The gradient of such a row, p(1 − p), is less than a twentieth of the largest, ¼;
- ``rectifier`` (ReLU, leaky ReLU, GELU, SiLU …): no single number says that a rectifier is stuck, being off for some
  inputs is what it is for. So units count: *never active*, whose input is positive for no sample, pass no gradient (or
  too little), and *always active*, positive for every sample, are linear. A channel is one unit, active where it is
  at any position.

Modules that act as rectifiers, such as transformers' GELU written out with tanh, are rectifiers as a whole. Gates inside
a recurrent layer's one function cannot be seen, and the result says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, require
from skiplab.ensembles import Ensemble
from skiplab.measurements.attention_rows import ATTENTIONS, SHARP, attention_rows, softmax_rows
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import Result
from skiplab.measurements.tallies import check_names, lies_in, tallied, told
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.blocks import shown
from skiplab.subjects.following import FRESH, Call, Followed, Follower
from skiplab.subjects.hooks import first_argument, visited
from skiplab.subjects.rectifiers import KNOWN, is_rectifier
from skiplab.subjects.subject import LossFunction
from skiplab.torch_private import without_subclasses

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FLAT", "SHARP", "Saturation", "saturation"]

FLAT = 0.05  # of the largest slope; ours: |tanh| > .975
RECTIFIERS = frozenset(
    "relu relu6 leaky_relu prelu rrelu elu celu selu gelu silu mish hardswish".split()
)
MOVES = frozenset("permute transpose swapaxes swapdims movedim moveaxis t T mT".split())


def _between(low: float, high: float) -> Callable[[Tensor], Tensor]:
    return lambda y: (y <= low) | (y >= high)


# Where the slope is below FLAT of the largest, told from the output: 1 − y², 4y(1 − y) = 1 − (2y − 1)², (1 − |y|)².
BOUNDED: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": lambda y: y.abs() > (1 - FLAT) ** 0.5,
    "sigmoid": lambda y: (2 * y - 1).abs() > (1 - FLAT) ** 0.5,
    "softsign": lambda y: y.abs() > 1 - FLAT**0.5,
    "hardsigmoid": _between(0.0, 1.0),
}
SOFTMAX = frozenset({"softmax", "log_softmax"})


@dataclass(frozen=True, repr=False)
class Saturation(Result):
    """Shares in [0, 1] of each activation, (E, activations), in the order of calls; NaN where a kind has no such share.

    ``kinds`` says of each row what it is. ``first_not_finite`` names, per network, the module that made the first
    number that is not finite; empty where all numbers are finite.
    """

    title = "Saturation"
    reference = "Glorot & Bengio (2010), section 3, on saturated units; limits are ours"
    yardstick = "an activation that responds to all samples has 0 in each column"
    place = "activation"

    layers: tuple[str, ...]
    kinds: tuple[str, ...]
    saturated: Tensor
    never_active: Tensor
    always_active: Tensor
    samples: int
    first_not_finite: tuple[str, ...]
    unseen: str = ""

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What activations do at these very samples, so without an error."""
        every = {
            "saturated": self.saturated,
            "never active": self.never_active,
            "always active": self.always_active,
        }
        known = {words: shares for words, shares in every.items() if not bool(shares.isnan().all())}
        return {words: Estimate.exact(shares) for words, shares in (known or every).items()}

    @property
    def based_on(self) -> str:
        """How many samples there were, and which kinds of activations."""
        return f"{self.samples} samples, {', '.join(f'{n} {kind}' for kind, n in Counter(self.kinds).items())}"

    @property
    def remarks(self) -> Sequence[str]:
        """Where numbers are not finite, and which activations could not be seen."""
        return (*told(self.first_not_finite), *([f"left out: {self.unseen}"] if self.unseen else []))

    def frame(self) -> pd.DataFrame:
        """The table of shares, with the kind of each activation."""
        table = super().frame()
        networks = len(self.saturated)
        table.insert(table.columns.get_loc(self.place) + 1, "kind", [*self.kinds] * networks)
        return table


def saturation(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str = "eval",
) -> Saturation:
    """Look for activations that no longer respond, in one forward pass per batch.

    ``layers`` names modules all of whose activations are meant (default: the whole network). ``mode`` is "eval",
    "train", or "batch": with each batch's own statistics. ``loss_fn`` serves only to call networks that take more than
    one input. Numbers that are not finite are answered with NaN, and ``first_not_finite`` says where they began.

    >>> found = saturation(model, x)
    >>> found.layers, found.kinds
    (('1', '3'), ('rectifier', 'rectifier'))
    >>> wide = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh())
    >>> wide[0].weight.data.mul_(1000.0).shape
    torch.Size([4, 4])
    >>> bool(saturation(wide, x).saturated > 0.9)
    True
    """
    subject = Subject.of(target, loss_fn=loss_fn, train_mode=mode == "train")
    check_names(subject.module, layers)
    foreign = {
        name: part
        for name, part in subject.module.named_modules()
        if name and not isinstance(part, KNOWN) and is_rectifier(part)
    }

    def observe(own: Subject, batch: Batch, rows: dict[str, _Row]) -> bool:
        return _Watcher(own.module, layers, foreign, rows).run(own, batch)

    found = tallied(subject, batches, mode, observe)
    require(
        len(found.places) > 0,
        f"no activation is called {'in ' + shown(layers) if layers else 'in the network'} on this batch; choose a part "
        "with a nonlinearity.",
    )
    for name in layers or ():
        if not any(lies_in(place.partition(":")[0].partition("#")[0], [name]) for place in found.places):
            raise Refused(f"layer {name!r} calls no activation on this batch; choose one that does.")
    kinds = {name: row.kind for rows in found.networks for name, row in rows.items()}
    return Saturation(
        layers=found.places,
        kinds=tuple(kinds[name] for name in found.places),
        saturated=found.table(lambda row: row.shares[0]),
        never_active=found.table(lambda row: row.shares[1]),
        always_active=found.table(lambda row: row.shares[2]),
        samples=found.samples,
        first_not_finite=tuple(found.first_not_finite),
        unseen=_unseen(subject.module, layers),
    )


def _unseen(module: nn.Module, layers: Sequence[str] | None) -> str:
    parts = [
        f"{name or 'the network'} ({type(part).__name__})"
        for name, part in module.named_modules()
        if isinstance(part, nn.RNNBase | nn.RNNCellBase) and lies_in(name, layers)
    ]
    return f"{shown(parts)}, whose gates are inside one function" if parts else ""


NOTHING = torch.tensor(torch.nan, dtype=torch.float64)


class _Row:
    """Sums over batches of what one call of a nonlinearity does."""

    kind: str

    @property
    def shares(self) -> tuple[Tensor, Tensor, Tensor]:
        """Saturated, never active, always active."""
        raise NotImplementedError


class _Counted(_Row):
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


class _Units(_Row):
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


class _Watcher(Follower):
    """Looks at nonlinearities while they are called; a note is the axis of units, from the end, or 0 if unknown."""

    def __init__(
        self,
        module: nn.Module,
        layers: Sequence[str] | None,
        foreign: Mapping[str, nn.Module],
        rows: dict[str, _Row],
    ) -> None:
        super().__init__()
        self.parts = dict(module.named_modules())
        self.layers, self.foreign, self.rows = layers, foreign, rows
        self.met: Counter[str] = Counter()
        self.finite = True

    def run(self, subject: Subject, batch: Batch) -> bool:
        """Whether all numbers that were looked at are finite."""

        def enter(name: str) -> Callable[..., None]:
            def look(_: nn.Module, args: Any, kwargs: Any) -> None:
                x = first_argument(args, kwargs)
                if lies_in(name, self.layers):
                    with without_subclasses():
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
        if not isinstance(call.outcome, Tensor):
            return [0] * len(call.outcome)
        return _axis(call)

    def _look(self, call: Call) -> None:
        name = call.name
        limits = _limits(call) if name == "hardtanh" else None
        if name in RECTIFIERS or (limits and limits[0] == 0):
            given = next((each for each in call.followed), None)
            leaves = [leaf for leaf in call.values[0] if isinstance(leaf, Tensor)]
            if given is not None and leaves:
                self._rectify(self._name(call), leaves[0], given.note)
        elif name in BOUNDED or limits:
            flat = _between(*limits) if limits else BOUNDED[name]
            y = call.outcome
            poison = 0 * y.sum(dtype=torch.float64)  # NaN if a number is
            self._count(self._name(call), "bounded", flat(y).sum() + poison, torch.tensor(y.numel()))
        elif name in SOFTMAX:
            self._count(self._name(call), "softmax", *softmax_rows(call))
        elif name in ATTENTIONS:
            self._count(self._name(call), "softmax", *attention_rows(call))

    def _name(self, call: Call) -> str:
        part = self.parts[call.scope]
        holds = (*part.children(), *(() if isinstance(part, nn.PReLU) else part.parameters(recurse=False)))
        if call.scope and not holds:
            return call.scope
        return f"{call.scope}: {call.name}" if call.scope else call.name

    def _place(self, name: str) -> str:
        self.met[name] += 1
        return name if self.met[name] == 1 else f"{name}#{self.met[name]}"

    def _count(self, name: str, kind: str, flat: Tensor, count: Tensor) -> None:
        row = self.rows.setdefault(self._place(name), _Counted(kind))
        assert isinstance(row, _Counted)
        row.add(flat, count)
        self.finite &= bool(flat.isfinite())

    def _rectify(self, name: str, x: Tensor, axis: int) -> None:
        if x.numel() == 0 or x.is_complex():
            return
        row = self.rows.setdefault(self._place(name), _Units())
        assert isinstance(row, _Units)
        if axis == 0 or -axis > x.ndim:  # maps have units as channels, all else last
            axis = -1 if x.ndim < 4 else 1 - x.ndim
        others = [other for other in range(x.ndim) if other != x.ndim + axis]
        low, high = (x.amin(others), x.amax(others)) if others else (x, x)
        row.add(low, high)
        self.finite &= bool((low.isfinite() & high.isfinite()).all())


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


def _limits(call: Call) -> tuple[float, float]:
    """Of hardtanh(x, min_val, max_val)."""
    args, kwargs = call.values
    low, high = (*args[1:3], -1.0, 1.0)[:2] if len(args) > 2 else (-1.0, 1.0)
    return float(kwargs.get("min_val", low)), float(kwargs.get("max_val", high))
