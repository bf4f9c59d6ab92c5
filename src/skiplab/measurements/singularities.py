"""How near a network is to the points where its layers are singular (orhan2018, figures 1, 4, S2, S6, S7).

A unit is an output feature of a ``Linear`` or an output channel of a convolution; its incoming weights are the
row or kernel that makes it (without the bias), its outgoing weights the columns that read it, its response what
the next layer sees of it (after activation and skip). Three kinds of singularity, per unit, layer and network:

- *elimination*: ℓ2 norms of a unit's incoming and outgoing weights; dead units, whose response is the same on
  every sample; the share of responses that are exactly 0; and, where a loss is given, stuck units, on which no
  sample's loss depends, so that their incoming weights do not learn;
- *overlap*: the correlation between the incoming weights of two units of a layer, averaged over pairs;
- *linear dependence*: the share of the three largest eigenvalues in the covariance of a layer's responses, and
  their entropy rank exp(−Σ pᵢ ln pᵢ), p = λ/Σλ (the "effective rank" of Roy & Vetterli 2007). A layer that does not
  respond at all has share 1 and rank 0.

The layer's number is the mean over its units or pairs, the network's the mean over its layers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, require, whole_numbers
from skiplab.ensembles import Ensemble
from skiplab.measurements.layer_singularities import LayerSingularities, Singularities
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction, trains
from skiplab.subjects.weight_layers import (
    WeightLayer,
    check_weight_layers,
    inputs_of,
    left_out,
    unit_axis,
    units_first,
    units_of,
    weight_layers,
)
from skiplab.subjects.wiring import Wiring, signals, wiring

_PAIRS_AT_ONCE = 2**22  # correlations in memory: 32 MiB
WIDE = (
    512  # units from which on few samples are kept as they are: eigenvalues of 4,096 units take 5 s on a core
)


def singularities(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    top: int = 3,
) -> Singularities:
    """Measure how near the named layers are to singular ones (default: all but the last, the output).

    A loss is needed only for ``stuck``. Covariances are taken over samples and, in convolutions, positions.

    >>> found = singularities(model, (x, y))
    >>> found.norm.shape, found.overlap.shape, found.dependence.shape, found.dead.shape  # (networks,) each
    (torch.Size([1]), torch.Size([1]), torch.Size([1]), torch.Size([1]))
    >>> print(repr(found).splitlines()[0])
    Singularities of 2 layers, 16 samples
    """
    mode = chosen_mode(target, mode, "train")
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=trains(mode))
    whole_numbers(top=top)
    check_weight_layers(subject.module, layers)
    known = weight_layers(subject.module)
    parts = known if layers is None else {name: known[name] for name in dict.fromkeys(layers)}
    for name, tensor in subject.parameters.items():
        require(
            not tensor.is_complex(),
            f"{name!r} is {tensor.dtype}; weights must be real here, so store its two parts instead.",
        )
    has_loss = subject.has_loss
    tallies: dict[str, _Tally] = {}
    wired: Wiring | None = None
    taps: dict[str, tuple[str, str]] = {}
    samples = 0
    for batch in batches_of(batches):
        samples += batch_size(batch)
        if wired is None:
            wired = wiring(subject, batch)
            names = _called(wired, list(parts) if layers is not None else None)
            taps = {name: _tap(name, wired) for name in names}
            tallies = {name: _Tally(units_of(parts[name])) for name in names}
        seen = signals(subject, batch, taps.values())
        for name, (source, side) in taps.items():
            count = units_of(parts[name])
            tallies[name].add(_responses(seen[source, side], known[source], count, side))
        if has_loss:
            for name, gradient in subject.activity_gradients(batch, list(taps)).items():
                if name in tallies:  # further calls of a layer carry a number and are left out
                    tallies[name].feel(_responses(gradient, parts[name], tallies[name].units, "output"))
    assert wired is not None  # since there was a batch with samples
    weights = _weights(subject)
    found = []
    for name, tally in tallies.items():
        readers = wired.readers[name]
        rows = weights[name].flatten(2).double()
        overlap, closest = _overlaps(rows, getattr(parts[name], "groups", 1))
        outgoing = [_outgoing(weights[r], known[r], tally.units) for r in readers]
        found.append(
            LayerSingularities(
                name=name,
                readers=readers,
                incoming=rows.norm(dim=2),
                outgoing=torch.stack(outgoing).norm(dim=0)
                if outgoing
                else torch.full_like(overlap, torch.nan),
                dead=tally.dead,
                zero=tally.zero,
                stuck=tally.stuck,
                overlap=overlap,
                closest=closest,
                eigenvalues=tally.eigenvalues,
                top=top,
            )
        )
    return Singularities(tuple(found), samples, left_out(subject.module) if layers is None else "")


class _Tally:
    """Sums over batches of what the units of one layer do.

    Of a wide layer with few samples these are kept instead of the products of units, as long as they are fewer.
    """

    def __init__(self, units: int) -> None:
        self.units = units
        self.count = 0
        self.rows: list[Tensor] = []
        self.squares: Tensor | None = None
        self.shift: Tensor | None = None
        self._felt: Tensor | None = None

    def add(self, responses: Tensor) -> None:
        """Take in responses (E, samples, units)."""
        x = responses.double()
        if self.shift is None:
            # Moments about a point near the mean, lest a large mean swallow a small variance.
            self.shift = x.mean(1, keepdim=True)
            self.low, self.high = x.amin(1), x.amax(1)
            self.zeros, self.sums = 0 * x[:, 0], 0 * x[:, 0]
        self.low, self.high = torch.minimum(self.low, x.amin(1)), torch.maximum(self.high, x.amax(1))
        self.zeros = self.zeros + (x == 0).sum(1)
        x = x - self.shift
        self.sums = self.sums + x.sum(1)
        self.count += x.shape[1]
        self.rows.append(x)
        if self.squares is not None or self.units <= WIDE or 2 * self.count > self.units:
            for rows in self.rows:
                products = rows.mT @ rows
                self.squares = products if self.squares is None else self.squares + products
            self.rows = []

    def feel(self, gradients: Tensor) -> None:
        """Take in the loss gradients (E, samples, units) of the layer's own outputs."""
        felt = (gradients != 0).any(1)
        self._felt = felt if self._felt is None else self._felt | felt

    @property
    def dead(self) -> Tensor:
        return self.low == self.high

    @property
    def zero(self) -> Tensor:
        return self.zeros / self.count

    @property
    def stuck(self) -> Tensor | None:
        return None if self._felt is None else ~self._felt

    @property
    def eigenvalues(self) -> Tensor:
        mean = self.sums / self.count
        # A unit that does not vary has exactly no variance, whatever rounding says.
        alive = (~self.dead).double()
        if self.squares is None:
            # XᵀX and XXᵀ have the same eigenvalues but for zeros, and there are fewer samples than units.
            centred = (torch.cat(self.rows, 1) - mean[:, None]) * alive[:, None]
            matrix = centred @ centred.mT / self.count
        else:
            matrix = self.squares / self.count - mean[:, :, None] * mean[:, None, :]
            matrix = matrix * alive[:, :, None] * alive[:, None, :]
        if not bool(matrix.isfinite().all()):
            raise Refused("a layer's responses are not finite; look for the layer where they overflow.")
        found = torch.linalg.eigvalsh(matrix).flip(1).clamp_min(0)
        return torch.nn.functional.pad(found, (0, self.units - found.shape[1]))


def _called(wired: Wiring, asked: list[str] | None) -> list[str]:
    if asked is None:
        require(
            len(wired.layers) > 0, "no Linear or convolution is called on this batch; measure another part."
        )
        return list(wired.layers[:-1] or wired.layers)
    for name in asked:
        if name not in wired.layers:
            raise Refused(f"layer {name!r} is not called on this batch; choose one that is.")
    return asked


def _tap(name: str, wired: Wiring) -> tuple[str, str]:
    readers = wired.readers[name]
    return (readers[0], "input") if readers else (name, "output")


def _responses(values: Tensor, layer: WeightLayer, units: int, side: str) -> Tensor:
    """Bring what a layer takes or gives, (E, B, …), to (E, samples and positions, units)."""
    moved = values.movedim(unit_axis(layer), -1)
    if side == "input" and inputs_of(layer) != units:  # a flattened map: each channel is a run of features
        moved = moved.unflatten(-1, (units, -1)).movedim(-2, -1)
    return moved.reshape(len(values), -1, units)


def _weights(subject: Subject) -> dict[str, Tensor]:
    """The weights of every weight layer as the network uses them, (E, units, …), parametrised or not."""

    def run(model: nn.Module) -> dict[str, Tensor]:
        return {name: units_first(part, part.weight.detach()) for name, part in weight_layers(model).items()}

    # Borrowed: a parametrisation may write buffers when its weight is read, as the spectral norm does in training.
    with subject.borrowed(), torch.no_grad():
        return dict(subject.map_models(run))


def _outgoing(weight: Tensor, layer: WeightLayer, units: int) -> Tensor:
    """Norms (E, units) of the weights with which a layer reads each unit."""
    groups = getattr(layer, "groups", 1)
    split = weight.double().unflatten(1, (groups, -1))  # (E, groups, outputs, inputs of the group, …)
    norms = split.movedim(3, 2).flatten(3).norm(dim=3).flatten(1)
    return norms.unflatten(1, (units, -1)).norm(dim=2)


def _overlaps(rows: Tensor, groups: int) -> tuple[Tensor, Tensor]:
    """Mean and largest correlation (E, units) of each unit's weights with those of the others of its group."""
    centred = rows - rows.mean(2, keepdim=True)
    norms = centred.norm(dim=2, keepdim=True)
    # Weights that do not vary have no correlation: a constant row leaves only rounding behind.
    known = norms > 1e-12 * rows.norm(dim=2, keepdim=True)
    units = torch.where(known, centred / norms, 0.0).unflatten(1, (groups, -1))
    seen = known.unflatten(1, (groups, -1))[..., 0]
    others = seen.sum(2, keepdim=True) - 1
    total = units.sum(2, keepdim=True)
    mean = ((units * total).sum(3) - (units * units).sum(3)) / others
    closest = torch.full_like(mean, -torch.inf)
    size = units.shape[2]
    step = max(1, _PAIRS_AT_ONCE // (size * groups * len(rows)))
    for begin in range(0, size, step):
        end = min(begin + step, size)
        # Each pair once: units before this piece have met it already.
        pairs = units[:, :, begin:end] @ units[:, :, begin:].mT
        both = seen[:, :, begin:end, None] & seen[:, :, None, begin:]
        pairs = pairs.masked_fill(~both, -torch.inf)
        own = torch.arange(end - begin, device=rows.device)
        pairs[:, :, own, own] = -torch.inf
        closest[:, :, begin:end] = torch.maximum(closest[:, :, begin:end], pairs.amax(3))
        if end < size:
            later = pairs[:, :, :, end - begin :].amax(2)
            closest[:, :, end:] = torch.maximum(closest[:, :, end:], later)
    valid = seen & (others > 0)
    mean, closest = (torch.where(valid, part, torch.nan).flatten(1) for part in (mean, closest))
    return mean, closest
