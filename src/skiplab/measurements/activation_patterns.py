"""Which rectifiers are active for which inputs (balduzzi2017, figures 3 and 4).

A unit is *active* for an input if what its rectifier takes is positive; of a layer that is no rectifier, or doubles
its units as a CReLU does, if what it gives is. Of a layer's pattern, (inputs × units):

- *activation*: the share of inputs for which a unit is active, averaged over units;
- *coactivation*: the share of distinct pairs of inputs for which a unit is active for both, averaged over units; a
  unit active for k of B inputs has k(k−1) / (B(B−1)). Unbiased coin flips give ½ and ¼;
- *contiguity*: the lengths of the runs of equal activation along the batch, for inputs in an order that means
  something, such as a grid. Coin flips give runs of 2 inputs on average, a unit that is never active one run of B.

The positions of a convolution's channel count as units of their own.

Rectifiers are modules, or calls such as ``torch.relu(x)`` and ``x.clamp_min(0)`` in a module's forward, which are
found by following the pass as ``saturation`` does and named as there: "blocks.3: relu". Where not all rectifiers have
a pattern the text of a result says so: those inside torch's recurrent layers, those without a sample a row, modules
that are not called, and functions where a pass cannot be followed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from skiplab.architectures.activations import CReLU
from skiplab.checks import Refused, listed, near, no_such, require
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import evaluated
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.rectifier_follower import RectifierFollower
from skiplab.measurements.result import Result, number_of
from skiplab.subjects import Subject
from skiplab.subjects.activation_calls import is_function
from skiplab.subjects.batches import Batch, batch_size, batches_of, is_lone_sample
from skiplab.subjects.blocks import shown
from skiplab.subjects.failures import LONE_SAMPLE
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.rectifiers import is_rectifier
from skiplab.subjects.subject import LossFunction
from skiplab.subjects.untouched import PlainTensors


@dataclass(frozen=True, repr=False)
class ActivationPatterns(Result):
    """The patterns of each layer, bool (E, B, units), and what they add up to; seed axis first everywhere.

    ``active`` goes by the layers' names, in the order they are called. A layer may be given by its name or number.
    ``diverged`` (E,) marks members of an ensemble that met numbers which are not finite: they have no patterns, their
    shares are NaN and they have no runs. ``left_out`` says which rectifiers were not measured, and why.
    """

    title = "Activation"
    reference = "Balduzzi et al. (2017), figures 3 and 4"
    yardstick = "rectifiers that act as coin flips have 0.5 and 0.25"
    marks = (("share of inputs", 0.5, "coin flips"), ("share of pairs of inputs", 0.25, "coin flips"))
    on_axes: ClassVar[Mapping[str, str]] = {
        "share of inputs": "share of inputs for which a unit is active",
        "share of pairs of inputs": "share of pairs of inputs for both of which a unit is active",
    }

    active: Mapping[str, Tensor]
    samples: int
    diverged: Tensor | None = None
    left_out: str = ""

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What units do at these very inputs, (E, layers), so without an error."""
        found = {"share of inputs": self.activation, "share of pairs of inputs": self.coactivation}
        return {words: Estimate.exact(values) for words, values in found.items()}

    @property
    def by_unit(self) -> Mapping[str, Sequence[Tensor]]:
        """The shares of inputs and of pairs for which each unit is active."""
        return {
            "share of inputs": [self.per_unit(layer) for layer in self.active],
            "share of pairs of inputs": [self.coactivation_per_unit(layer) for layer in self.active],
        }

    @property
    def based_on(self) -> str:
        """How many inputs there were, and how many units."""
        units = sum(each.shape[2] for each in self.active.values())
        return f"{number_of(self.samples, 'input')}, {number_of(units, 'unit')}"

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the layers in the order they are called; the n-th call of a layer is ``name#n``."""
        return tuple(self.active)

    @property
    def activation(self) -> Tensor:
        """Mean share of inputs for which a unit is active, (E, layers)."""
        return torch.stack([self.per_unit(layer).mean(1) for layer in self.active], 1)

    @property
    def coactivation(self) -> Tensor:
        """Share of distinct pairs of inputs for which a unit is active, mean over units, (E, layers).

        NaN for a single input, which makes no pair.
        """
        return torch.stack([self.coactivation_per_unit(layer).mean(1) for layer in self.active], 1)

    def per_unit(self, layer: str | int) -> Tensor:
        """Share of inputs for which each unit is active, (E, units): the left histogram of figure 4."""
        return self._known(self[layer].sum(1).double() / self.samples)

    def coactivation_per_unit(self, layer: str | int) -> Tensor:
        """Share of distinct pairs of inputs for which each unit is active, (E, units)."""
        active = self[layer].sum(1).double()
        pairs = self.samples * (self.samples - 1)
        return self._known(active * (active - 1) / pairs if pairs else active * torch.nan)

    def contiguity(self, layer: str | int) -> tuple[Tensor, ...]:
        """Lengths of the runs of equal activation along the batch, one tensor a member, unit after unit."""
        gone = [False] * len(self[layer]) if self.diverged is None else self.diverged.tolist()
        return tuple(
            run_lengths(rows[:0] if lost else rows)
            for rows, lost in zip(self.raster(layer), gone, strict=True)
        )

    def contiguity_counts(self, layer: str | int) -> Tensor:
        """Number of runs of length 1 … B, (E, B): the right histogram of figure 4."""
        counts = [torch.bincount(lengths, minlength=self.samples + 1) for lengths in self.contiguity(layer)]
        return torch.stack(counts)[:, 1:]

    def raster(self, layer: str | int) -> Tensor:
        """The pattern with units as rows and inputs as columns, bool (E, units, B), as figure 4 draws it."""
        return self[layer].transpose(1, 2)

    def _known(self, shares: Tensor) -> Tensor:
        return shares if self.diverged is None else shares.masked_fill(self.diverged[:, None], torch.nan)

    def __getitem__(self, layer: str | int) -> Tensor:
        if isinstance(layer, str):
            if layer not in self.active:
                raise Refused(f"layer {layer!r} was not measured.{near(layer, self.active)}")
            return self.active[layer]
        count = len(self.active)
        require(-count <= layer < count, f"layer number {layer} does not exist; there are {count}.")
        return self.active[self.layers[layer]]


def activation_patterns(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
) -> ActivationPatterns:
    """Note which units of the named layers (default: all rectifiers) are active for each input.

    ``layers`` names modules, or rectifiers that are called as functions as a result names them ("blocks.3: relu").
    ``mode="batch"`` normalises with the mean and variance of each batch, ``"eval"`` as in evaluation. A
    network in which a layer meets a number that is not finite is refused, a member of an ensemble is marked. A
    ``loss_fn`` serves only to call networks that take more than one input.

    >>> patterns = activation_patterns(model, x, mode="batch")
    >>> patterns.activation.shape, patterns.coactivation.shape  # (networks, layers)
    (torch.Size([1, 2]), torch.Size([1, 2]))
    >>> print(repr(patterns).splitlines()[0])
    Activation of 2 layers, 16 inputs, 16 units
    """
    mode = chosen_mode(target, mode)
    subject = Subject.of(target, loss_fn=loss_fn)
    plan = _planned(subject.module, layers)
    found = []
    for batch in batches_of(batches):
        found.append(_of_batch(evaluated(subject, batch, mode), batch, plan))
        shapes = [
            {name: each.shape[2] for name, each in part.active.items()} for part in (found[0], found[-1])
        ]
        require(
            shapes[0] == shapes[1], "the batches run different layers or units; name common ones in layers."
        )
    if len(found) == 1:
        return found[0]
    active = {name: torch.cat([part.active[name] for part in found], 1) for name in found[0].active}
    diverged = torch.stack([part.diverged for part in found if part.diverged is not None]).any(0)
    left_out = "; ".join(dict.fromkeys(part.left_out for part in found if part.left_out))
    return ActivationPatterns(active, sum(part.samples for part in found), diverged, left_out)


@dataclass(frozen=True)
class _Plan:
    """Which modules to look at, of which of them at what they take, and which functions: None means all there are."""

    modules: tuple[str, ...]
    by_input: tuple[str, ...]
    functions: tuple[str, ...] | None
    asked: bool


def _planned(module: nn.Module, layers: Sequence[str] | None) -> _Plan:
    known = dict(module.named_modules())
    rectifiers = tuple(name for name, part in known.items() if is_rectifier(part))
    if layers is None:
        found = tuple(name for name, part in known.items() if isinstance(part, CReLU) or name in rectifiers)
        return _Plan(found, rectifiers, None, asked=False)
    listed("layers", layers)
    require(len(layers) > 0, "layers is empty; name a layer, or leave it out for all rectifiers.")
    names = tuple(dict.fromkeys(layers))
    functions = tuple(name for name in names if is_function(name, known))
    for name in names:
        if name not in known and name not in functions:
            raise no_such("layer", name, known)
    modules = tuple(name for name in names if name in known)
    return _Plan(modules, tuple(name for name in modules if name in rectifiers), functions, asked=True)


def _of_batch(subject: Subject, batch: Batch, plan: _Plan) -> ActivationPatterns:
    """The patterns on one batch."""
    size = batch_size(batch)
    found, largest, unfollowed = _seen(subject, batch, plan)
    for name in (*plan.modules, *(plan.functions or ())):
        if name not in found and (plan.asked or not found):
            raise Refused(f"layer {name!r} is not called on this batch; choose one that is.")
    hidden = f" that can be seen (left out: {unfollowed})" if unfollowed else ""
    require(
        len(found) > 0,
        f"the network calls no rectifier on this batch{hidden}; name in layers the modules whose positive outputs "
        "count as active.",
    )
    askew = [name for name, pattern in found.items() if pattern.ndim < 2 or pattern.shape[1] != size]
    if askew and (plan.asked or len(askew) == len(found)):
        raise Refused(
            f"layer {askew[0]!r} has {tuple(found[askew[0]].shape[1:])} for {size} samples; "
            + (LONE_SAMPLE if is_lone_sample(batch) else "choose one with a sample a row")
            + "."
        )
    finite = largest.isfinite()
    diverged = ~finite.all(1)
    if not subject.ensemble and bool(diverged):
        name = list(found)[finite[0].tolist().index(False)]
        raise Refused(
            f"layer {name!r} meets a number that is not finite; look for diverged parameters or inputs that are not "
            "finite."
        )
    patterns = {
        name: pattern.reshape(*pattern.shape[:2], -1) for name, pattern in found.items() if name not in askew
    }
    reasons = [unfollowed] if unfollowed else []
    if not plan.asked:
        idle = [name for name in plan.modules if name not in found]
        reasons += [f"{shown(askew)}, without a sample a row"] if askew else []
        reasons += [f"{shown(idle)}, which the pass does not call"] if idle else []
    return ActivationPatterns(patterns, size, diverged, "; ".join(reasons))


def _seen(subject: Subject, batch: Batch, plan: _Plan) -> tuple[dict[str, Tensor], Tensor, str]:
    """Patterns (E, B, …) and largest numbers (E, layers), in the order of calls, and what could not be seen.

    A pass that fails only while it is followed, as code of other libraries may that takes plain tensors, is run again
    with hooks on modules alone.
    """
    if plan.functions is not None and not plan.functions:
        return *_passed(subject, batch, plan, None), ""
    follower = RectifierFollower(subject.module, plan.modules, plan.functions)
    try:
        return *_passed(subject, batch, plan, follower), follower.unseen
    except Exception:
        if plan.functions:
            raise
        why = "rectifiers that are called as functions, since the pass fails while it is followed"
        return *_passed(subject, batch, plan, None), why


def _passed(
    subject: Subject, batch: Batch, plan: _Plan, follower: RectifierFollower | None
) -> tuple[dict[str, Tensor], Tensor]:
    seen: dict[str, Tensor] = {}
    peaks: list[Tensor] = []

    def note(name: str, signal: Tensor) -> Tensor:
        with PlainTensors():  # looking is no call of the network's
            plain = signal.detach().as_subclass(Tensor)
            # As bool at once: a quarter of what a deep network's activities would take in float32.
            seen[name] = plain > 0
            # NaN or ∞ if any is; a tenth of what isfinite takes.
            peaks.append(
                plain.abs().amax().double() if plain.numel() else torch.zeros((), dtype=torch.float64)
            )
        return signal

    def run(model: nn.Module) -> tuple[dict[str, Tensor], Tensor]:
        seen.clear()
        peaks.clear()
        restart()
        if follower is None:
            subject.call(model, batch)
        else:
            follower.run(subject, model, batch, note)
        return dict(seen), torch.stack(peaks) if peaks else torch.zeros(1)

    with subject.borrowed(plan.modules, note, plan.by_input) as restart, torch.no_grad():
        found: tuple[dict[str, Tensor], Tensor] = subject.map_models(run)
    return found


def run_lengths(rows: Tensor) -> Tensor:
    """Lengths of the runs of equal values along each row of a matrix, row after row."""
    starts = torch.ones_like(rows, dtype=torch.bool)
    starts[:, 1:] = rows[:, 1:] != rows[:, :-1]
    # Every row starts a run, so that in the rows laid end to end a run lasts until the next start.
    positions = starts.flatten().nonzero()[:, 0]
    return torch.diff(positions, append=positions.new_tensor([rows.numel()]))
