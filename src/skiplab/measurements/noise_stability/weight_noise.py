"""Weight noise: how far outputs move when Gaussian noise is added to one layer's weights (yu2019, sections 1 and 5).

The paper says that the same amount of noise has a smaller effect on residual networks and measures cushions instead;
this is the measurement itself. Each layer by itself gets W + N with independent entries of N: ``relative`` noise has
E‖N‖² = size² ‖W‖_F² (or that of W without its identities), absolute noise entries of deviation ``size``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, listed, positive, require, whole_numbers
from skiplab.ensembles import Ensemble
from skiplab.measurements.answers import Tally, answers, decides
from skiplab.measurements.batch_statistics import in_mode
from skiplab.measurements.noise_stability.layer_cushions import identities_by_layer
from skiplab.measurements.result import Estimate, Result, number_of
from skiplab.randomness import member_seeds, torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batches_of
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.subjects.weight_layers import check_weight_layers, weight_layers, weight_matrices
from skiplab.subjects.wiring import stored_names
from skiplab.telling import Counted, Tell


@dataclass(frozen=True, repr=False)
class WeightNoise(Result):
    """What noise in each layer did, draw by draw: tensors (E, layers, draws), and (E,) of what was before.

    ``change`` is ‖y′ − y‖ / ‖y‖ over all samples; ``accuracy`` needs whole-numbered labels, ``agreement`` outputs
    with two classes or more, else they are NaN.
    """

    title = "Change under weight noise"
    on_axes: ClassVar[Mapping[str, str]] = {
        "change": "relative change of the outputs ‖y′ − y‖ / ‖y‖",
        "agreement": "share of samples with the same answer",
    }
    reference = "yu2019, sections 1 and 5"

    layers: tuple[str, ...]
    change: Tensor
    accuracy: Tensor
    agreement: Tensor
    accuracy_before: Tensor
    size: float
    relative: bool
    samples: int

    @property
    def accuracy_lost(self) -> Tensor:
        """Accuracy before minus accuracy with noise, (E, layers, draws)."""
        return self.accuracy_before[:, None, None] - self.accuracy

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Means over draws of the noise, of what the samples tell."""
        every = {
            "change": Estimate.mean(self.change).within(0),
            "accuracy lost": Estimate.mean(self.accuracy_lost).within(-1, 1),
            "agreement": Estimate.mean(self.agreement).within(0, 1),
        }
        return {
            words: values
            for words, values in every.items()
            if words == "change" or not bool(values.value.isnan().all())
        }

    @property
    def based_on(self) -> str:
        """The noise and how often it was drawn."""
        kind = f"{self.size:g}‖W‖" if self.relative else f"deviation {self.size:g}"
        draws, samples = number_of(self.change.shape[2], "draw"), number_of(self.samples, "sample")
        return f"noise of {kind}, {draws}, {samples}"


def weight_noise(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    size: float = 0.1,
    relative: bool = True,
    draws: int = 10,
    seed: int | Sequence[int] = 0,
    identities: Mapping[str, Tensor] | None = None,
    tell: Tell | None = None,
) -> WeightNoise:
    """Add noise to one weight matrix after the other, and compare what networks answer.

    These are the weights of linear and convolutional layers, by the layers' names, and each matrix of recurrent
    layers and attention, by its own ("rnn.weight_hh_l0"); such a layer in ``layers`` stands for all its matrices.

    The standard normal numbers of a draw follow from ``seed``, the layer's place and the draw alone: networks of the
    same shape get the same ones, scaled. An ensemble's members share them, or have their own if there is a seed for
    each. ``identities`` gives, by the names of weights, what does not count in the size of relative noise. ``tell``
    hears how far it is, batch by batch.

    >>> found = weight_noise(model, (x, y), size=0.1)
    >>> found.change.shape, list(found.estimates)  # (networks, layers, draws)
    (torch.Size([1, 3, 10]), ['change', 'accuracy lost', 'agreement'])
    """
    size = positive("size", size, 0.1)
    whole_numbers(draws=draws)
    mode = chosen_mode(target, mode)
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn)
    names = _own_weights(subject.module, layers)
    removed = identities_by_layer(identities, weight_layers(subject.module))
    seeds = member_seeds(seed, subject.size)
    state = subject.parameters | subject.fixed
    before, after = Tally(), {(name, draw): Tally() for name in names for draw in range(draws)}
    for number, batch in enumerate(batches_of(batches), start=1):
        own = in_mode(subject, batch, mode)
        old = answers(own, batch)
        for what, values in old.items():
            if what == "loss" or not bool(decides(values).all()):
                subject.refuse_unless_finite(what, values)
        before.add(old, old, batch)
        count = Counted(tell, len(names), f"layers, batch {number}")
        for place, (layer, name) in enumerate(names.items()):
            weight = state[name]
            scale = _scale(weight, removed.get(layer), size, relative)
            for draw in range(draws):
                noise = [_noise(weight[0], each, place, draw) for each in seeds]
                noisy = weight + scale * torch.stack(noise)
                after[layer, draw].add(answers(own.with_tensors({name: noisy}), batch), old, batch)
            count.add()

    def told(quantity: str) -> Tensor:
        by_layer = [[getattr(after[layer, draw], quantity) for draw in range(draws)] for layer in names]
        return torch.stack([torch.stack(each, 1) for each in by_layer], 1)

    outcome = {quantity: told(quantity) for quantity in ("change", "accuracy", "agreement")}
    return WeightNoise(
        tuple(names),
        **outcome,
        accuracy_before=before.accuracy,
        size=size,
        relative=relative,
        samples=before.samples,
    )


def _own_weights(module: nn.Module, layers: Sequence[str] | None) -> dict[str, str]:
    """The names in the state of the chosen matrices, of those that layers share once."""
    stored, known = stored_names(module), weight_matrices(module)
    listed("layers", layers)
    require(len(known) > 0, "the network has no weight matrix, so there are no weights to change.")
    asked = known if layers is None else dict.fromkeys(layers)
    several = {name: [each for each, (owner, _) in known.items() if owner == name] for name in asked}
    matrices = [each for name in asked for each in ([name] if name in known else several[name] or [name])]
    unknown = [name for name in matrices if name not in known]
    if unknown or not matrices:
        check_weight_layers(module, unknown)
    found: dict[str, str] = {}
    for name in matrices:
        if known[name] not in stored:
            raise Refused(
                f"layer {name!r} computes its weights from other parameters; leave it out of layers."
            )
        if stored[known[name]] not in found.values():
            found[name] = stored[known[name]]
    return found


def _scale(weight: Tensor, removed: Tensor | None, size: float, relative: bool) -> Tensor:
    """The deviation of a weight's noise, for each member (E, 1, …)."""
    shape = (-1, *(1,) * (weight.ndim - 1))
    if not relative:
        return weight.new_full((len(weight),), size).view(shape)
    bare = weight if removed is None else weight - removed.to(weight)
    norms = torch.linalg.vector_norm(bare.flatten(1), dim=1, dtype=torch.float64)
    return (size * norms / weight[0].numel() ** 0.5).to(weight.dtype).view(shape)


def _noise(like: Tensor, seed: int, place: int, draw: int) -> Tensor:
    # On the CPU whatever the device: the same noise everywhere.
    stream = torch_generator(seed, "weight noise", place, draw)
    return torch.randn(like.shape, generator=stream, dtype=torch.float64).to(like)
