"""``sl.compare``: train the networks of several factories on the same batches, and measure them before and after."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skiplab.checks import Refused, device_of, one_of, require, seeded, whole_numbers
from skiplab.data import TensorSet
from skiplab.diagnosis import data as samples_by_name
from skiplab.diagnosis.comparison.measuring import ModelMeasure, NotMeasured, checked, measured
from skiplab.diagnosis.comparison.result import Comparison, ModelRuns
from skiplab.diagnosis.courses import Course, course_of
from skiplab.diagnosis.factory import Factory
from skiplab.diagnosis.losses import Loss, loss_for
from skiplab.diagnosis.rates import checked_rates, choose_rates
from skiplab.diagnosis.side_by_side import Entrant, Run, accuracy_of, trained
from skiplab.randomness import run_seeds
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, target_of
from skiplab.subjects.subject import Criterion, LossFunction, call_on_input, criterion_of, first_tensor
from skiplab.telling import Tell, silent

STEPS = 500  # where neither steps nor epochs are given; ours
BATCH = 64
SEARCHING = 3  # seeds that choose a rate; see rates.py on what few seeds ask for
IMAGES, TEST_IMAGES = 10_000, 2_000  # of a large set that is given by name
RANDOM = 512  # random samples
MEASURED_ON = 128  # samples that instruments see
CHUNK = 500  # test samples at once


def compare(
    models: Mapping[str, Callable[..., nn.Module] | nn.Module],
    data: Any,
    *,
    seeds: int = 10,
    steps: int | None = None,
    epochs: int | None = None,
    measure: Sequence[str] = ("gradient_norms",),
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    rate: float | None = None,
    rates: Sequence[float] | None = None,
    batch_size: int | None = None,
    test: tuple[Tensor, Tensor] | TensorSet | None = None,
    device: str = "cpu",
    seed: int = 0,
    tell: Tell | None = None,
) -> Comparison:
    """Train several networks of each model on the same batches; judge the models in pairs, and measure them.

    ``models`` maps names to functions that make a network; they take nothing, or ``seed``, or ``generator``. ``data``
    is (inputs, targets), a TensorSet, "digits", "cifar10" or "random", or a list of batches. Networks of seed i meet
    the same batches in the same order, whatever the model. All are trained by Adam in training mode for ``steps``
    steps (500) or ``epochs``; those of one model as one ensemble where that computes the same.

    ``rate`` is everybody's; of several ``rates`` every model gets its best, chosen on three further seeds; without
    either they are searched for about 0.001, which about doubles the work. Pairs are judged by accuracy on ``test``
    samples (sets by name have some), else by the final loss: the mean over the last tenth of the steps.

    ``measure`` names instruments, each used with its defaults on 128 samples, before and after training, with the
    batch's own statistics in normalisation. A loss is inferred only where that is safe. Ctrl-C ends it with the
    models that are finished.

    >>> models = {"linear": lambda: torch.nn.Linear(4, 3), "mine": lambda: model}
    >>> found = compare(models, (x, y), seeds=3, steps=20, rate=0.01, measure=["weight_noise"])
    >>> print(repr(found).splitlines()[0])  # then losses with intervals, pairs with verdicts, what was measured
    2 models, 3 seeds, 20 steps of Adam on 16 samples in batches of 16
    >>> sorted(found.frame().quantity.unique())[:3]  # .plot() draws, .save("comparison.html") writes a page
    ['diverged', 'final accuracy', 'final loss']
    """
    require(
        isinstance(models, Mapping) and len(models) > 0,
        f"models is a {type(models).__name__}, but must map names to functions, such as {{'plain': f, 'mine': g}}.",
    )
    factories = [Factory(str(name), make) for name, make in models.items()]
    whole_numbers(seeds=seeds)
    seeded(seed)
    device_of(device)
    whole_numbers(
        **{name: value for name, value in (("steps", steps), ("epochs", epochs)) if value is not None}
    )
    require(steps is None or epochs is None, "both steps and epochs were given; pass one of them.")
    instruments = checked(measure)
    choices = checked_rates(rate, rates)
    deciding = tuple(run_seeds(seed, seeds, role="decide"))
    samples = {factory.name: factory(deciding[0]) for factory in factories}
    given, held_out = _data(data, list(samples.values()), test)
    size = BATCH if batch_size is None and _is_one(given) else batch_size
    course = course_of(given, size, None if epochs else steps or STEPS)
    length = steps or (epochs * course.per_epoch if epochs else STEPS)
    looked_at = course.first(MEASURED_ON)
    loss = _loss(samples, looked_at, criterion, loss_fn)
    finished: list[tuple[ModelRuns, list[ModelMeasure | NotMeasured]]] = []
    notes: list[str] = []
    try:
        for factory in factories:
            work = _Work(factory, course, loss, length, deciding, device, tell or silent)
            chosen = work.rate(choices, tuple(run_seeds(seed, SEARCHING, role="search")))
            runs = work.train(chosen.rate)
            found = work.measured(runs, instruments, looked_at)
            finished.append((_summed_up(runs, chosen, held_out, loss, device), found))
    except KeyboardInterrupt as stop:
        if not finished or type(stop) is not KeyboardInterrupt:  # such as one that TERM raises
            raise
        left = [factory.name for factory in factories[len(finished) :]]
        notes.append(f"stopped by Ctrl-C: {', '.join(left)} not finished, and so left out.")
    every = [each for _, some in finished for each in some]
    return Comparison(
        tuple(runs for runs, _ in finished),
        deciding,
        length,
        course.words,
        loss.words,
        _chance(course),
        tuple(each for each in every if isinstance(each, ModelMeasure)),
        tuple(each for each in every if isinstance(each, NotMeasured)),
        tuple(notes),
        bool(notes),
    )


class _Work:
    """What is done with one model."""

    def __init__(
        self,
        factory: Factory,
        course: Course,
        loss: Loss,
        steps: int,
        seeds: tuple[int, ...],
        device: str,
        tell: Tell,
    ) -> None:
        self.factory, self.course, self.loss, self.steps = factory, course, loss, steps
        self.seeds, self.device, self.tell = seeds, device, tell

    def rate(self, choices: tuple[float, ...] | None, seeds: tuple[int, ...]) -> Any:
        """The model's learning rate, with what was tried."""
        name = self.factory.name
        how: dict[str, Any] = {"steps": self.steps, "device": self.device, "tell": self.tell}
        return choose_rates([name], self._entering, choices, self.course, self.loss, seeds=seeds, **how)[name]

    def train(self, rate: float) -> list[Run]:
        """A trained network per seed."""
        entrants = [self._entering(self.factory.name, seed, rate) for seed in self.seeds]
        how: dict[str, Any] = {"steps": self.steps, "device": self.device, "tell": self.tell}
        return trained(entrants, self.course, self.loss, **how)

    def measured(
        self, runs: Sequence[Run], names: Sequence[str], batch: Batch
    ) -> list[ModelMeasure | NotMeasured]:
        """The instruments' answers before and after training."""
        batch = samples_by_name.onto(batch, self.device)
        # Copies: a factory may give out one and the same network.
        fresh = [copy.deepcopy(self.factory(seed)).to(self.device) for seed in self.seeds] if names else []
        times = {
            "before": (fresh, [True] * len(fresh)),
            "after": ([run.model for run in runs], [not run.diverged for run in runs]),
        }
        found = []
        for name in names:
            for when, (networks, sound) in times.items():
                self.tell(f"{self.factory.name}: {name} {when} training")
                found.append(measured(self.factory.name, name, when, networks, sound, batch, self.loss))
        return found

    def _entering(self, name: str, seed: int, rate: float) -> Entrant:
        return Entrant(name, self.factory(seed), seed, rate)


def _data(
    data: Any, networks: list[nn.Module], test: tuple[Tensor, Tensor] | TensorSet | None
) -> tuple[Any, Batch | None]:
    """Samples to train on in a form that every network takes, and those to test on."""
    held_out = (test.inputs, test.labels) if isinstance(test, TensorSet) else test
    if held_out is not None:
        pair = isinstance(held_out, tuple | list) and len(held_out) == 2
        right = pair and all(isinstance(part, Tensor) and part.ndim for part in held_out)
        require(right, f"test is a {type(test).__name__}; pass (inputs, targets), two tensors.")
        lengths = [len(part) for part in held_out]
        require(
            lengths[0] == lengths[1] > 0,
            f"test has {lengths[0]} inputs for {lengths[1]} targets; pass as many.",
        )
    if not isinstance(data, str):
        return data, held_out
    if data == "random":
        return samples_by_name.named_batch(data, networks[0], RANDOM), held_out
    one_of("data", data, samples_by_name.NAMES)
    from skiplab.data import tensors

    large, dtype = data != "digits", samples_by_name.dtype_of(networks[0])
    found = [
        tensors(data, split, images=images if large else None, flat=False, dtype=dtype)
        for split, images in (("train", IMAGES), ("test", TEST_IMAGES))
    ]
    sets = [(each.inputs, each.labels) for each in found]
    if held_out is not None:
        sets[1] = held_out
    taken = samples_by_name.taken_by(networks, sets[0])
    flat = taken[0].ndim < sets[0][0].ndim
    return taken, (sets[1][0].flatten(1) if flat else sets[1][0], sets[1][1])


def _is_one(data: Any) -> bool:
    return isinstance(data, tuple | Mapping | Tensor | TensorSet)


def _loss(
    samples: Mapping[str, nn.Module], batch: Batch, criterion: Criterion | None, loss_fn: LossFunction | None
) -> Loss:
    """The loss of all models, tried on each of them before anything is trained."""
    first: Loss | None = None
    for name, network in samples.items():
        batch = samples_by_name.onto(batch, Subject.of(network).device)
        found = loss_for(network, batch, criterion, loss_fn)
        if not found.known:
            raise Refused(f"{name} cannot be trained: {found.words}.")
        first = first or found
        losses = Subject.of(network, criterion=first.criterion, loss_fn=first.loss_fn).losses(batch)
        require(losses.ndim == 1, f"{name} has no scalar loss; reduce it, say with .mean().")
    assert first is not None
    return first


def _summed_up(runs: Sequence[Run], chosen: Any, test: Batch | None, loss: Loss, device: str) -> ModelRuns:
    scores = [_tested(run, test, loss, device) for run in runs]
    return ModelRuns(
        runs[0].name,
        chosen,
        sum(each.numel() for each in runs[0].model.parameters() if each.requires_grad),
        torch.stack([run.loss for run in runs]).numpy(),
        torch.stack([run.accuracy for run in runs]).numpy(),
        np.array([run.diverged for run in runs]),
        np.array([loss for loss, _ in scores]),
        np.array([accuracy for _, accuracy in scores]),
        all(run.together for run in runs),
    )


def _tested(run: Run, test: Batch | None, loss: Loss, device: str) -> tuple[float, float]:
    """Loss and accuracy on the test samples in evaluation mode; NaN without any, and for diverged networks."""
    if test is None or run.diverged or loss.criterion is None:
        return float("nan"), float("nan")
    total, hits, count = 0.0, 0.0, 0
    is_mean = getattr(loss.criterion, "reduction", "mean") == "mean"
    with torch.no_grad():
        for chunk in zip(test[0].split(CHUNK), test[1].split(CHUNK), strict=True):
            batch = tuple(part.to(device) for part in chunk)
            output, size = call_on_input(run.model, batch), len(batch[1])
            total += float(criterion_of(loss.criterion, output, target_of(batch))) * (size if is_mean else 1)
            hits += accuracy_of(first_tensor(output), batch[1]) * size
            count += size
    return total / count, hits / count


def _chance(course: Course) -> float:
    """The share of the most frequent class; NaN without classes."""
    samples = course.samples
    if samples is None or samples.labels.is_floating_point() or samples.labels.ndim != 1:
        return float("nan")
    counts = samples.labels.unique(return_counts=True)[1]
    return float(counts.max()) / len(samples.labels)
