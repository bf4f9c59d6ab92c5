"""Training of any networks side by side: those of one structure as one ensemble, all others one by one.

Both ways take the same steps of Adam on the same batches. Networks are stacked only if on a batch the ensemble
computes what each of them computes alone: two networks may have equal parts and still differ in what Python keeps.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.data import TensorSet
from skiplab.diagnosis.courses import Course
from skiplab.diagnosis.data import onto
from skiplab.diagnosis.factory import seeded_globally
from skiplab.diagnosis.losses import NO_DERIVATIVE, Loss, class_axis
from skiplab.ensembles import Ensemble
from skiplab.randomness import derive
from skiplab.subjects import Subject
from skiplab.subjects.batches import outside_inference_mode, target_of
from skiplab.subjects.subject import call_on_input, criterion_of, first_tensor
from skiplab.telling import Tell, silent
from skiplab.training.memory import members_at_once
from skiplab.training.optimisers import Adam
from skiplab.training.step import Step

Penalty = Callable[[nn.Module], Tensor]
Curve = TypeVar("Curve", Tensor, np.ndarray)
PROBE = 4  # samples on which stacked networks are compared with each alone
# Rounding in float32 moves outputs of sound networks by 1e-5 of their size; another constant in Python by far more.
ALIKE = 1e-2
FAILS = (
    *(RuntimeError, NotImplementedError, TypeError, ValueError),
    *(IndexError, KeyError, AttributeError, AssertionError),
)  # what torch and networks raise


@dataclass(frozen=True, eq=False)
class Entrant:
    """A network to be trained, which itself stays as it is; the seed names its order of batches."""

    name: str
    model: nn.Module
    seed: int
    rate: float
    penalty: Penalty | None = None


@dataclass(frozen=True, eq=False)
class Run:
    """A trained network with its loss and accuracy (steps,) in float64: NaN after divergence, or without classes."""

    name: str
    seed: int
    rate: float
    model: nn.Module
    loss: Tensor
    accuracy: Tensor
    diverged: bool
    together: bool

    @property
    def final_loss(self) -> float:
        """The mean loss over the last tenth of the steps."""
        return float(last_tenth(self.loss).mean())


def last_tenth(curve: Curve) -> Curve:
    """The last tenth of the steps (…, steps), at least one."""
    return curve[..., -max(1, curve.shape[-1] // 10) :]


def trained(
    entrants: Sequence[Entrant],
    course: Course,
    loss: Loss,
    *,
    steps: int,
    device: str | torch.device = "cpu",
    tell: Tell = silent,
) -> list[Run]:
    """Train every entrant in training mode for so many steps of Adam; the runs come in the order of the entrants."""
    found: dict[int, Run] = {}
    with torch.inference_mode(False), torch.enable_grad(), _several_samples():
        for places in _groups(entrants):
            some = [entrants[place] for place in places]
            ensemble = None
            if loss.criterion is not None and all(each.penalty is None for each in some):
                ensemble = stacked([each.model for each in some], course.samples, loss, device)
            if ensemble is None:
                runs = [_alone(each, course, loss, steps, device, tell) for each in some]
            else:
                runs = _together(ensemble, some, course, loss, steps, tell)
            found.update(zip(places, runs, strict=True))
    return [found[place] for place in range(len(entrants))]


@contextmanager
def _several_samples() -> Iterator[None]:
    """Say in one sentence that batch normalisation cannot be trained on batches of one sample."""
    try:
        yield
    except ValueError as problem:
        if "more than 1 value per channel" not in str(problem) or isinstance(problem, Refused):
            raise
        raise Refused(
            "batch normalisation in training mode needs more than one sample per batch; give a larger batch_size."
        ) from problem


def _groups(entrants: Sequence[Entrant]) -> list[list[int]]:
    """The places of entrants that can be stacked; those with a penalty stay by themselves."""
    groups: list[list[int]] = []
    for place, each in enumerate(entrants):
        for group in groups:
            first = entrants[group[0]]
            if first.penalty is None and each.penalty is None and alike(first.model, each.model):
                group.append(place)
                break
        else:
            groups.append([place])
    return groups


def alike(one: nn.Module, other: nn.Module) -> bool:
    """Whether two networks have equal parts, so that they may be stacked."""
    try:
        Ensemble.of([one, other], device="meta")
    except (Refused, *FAILS):
        return False
    return True


# As one ensemble --------------------------------------------------------------------------------------------


def stacked(
    models: Sequence[nn.Module], samples: TensorSet | None, loss: Loss, device: str | torch.device
) -> Ensemble | None:
    """The networks as one ensemble, or None where that cannot be, or would compute something else."""
    if samples is None or loss.criterion is None:
        return None
    inputs, labels = (part[:PROBE].to(device) for part in (samples.inputs, samples.labels))
    for backend in ("auto", "loop"):
        try:
            with seeded_globally(0):
                ensemble = Ensemble.of(models, backend=backend, device=device)
                _check_gradients(
                    Ensemble.of(models[:2], backend=backend, device=device), inputs, labels, loss
                )
                if _computes_alike(ensemble, models, inputs):
                    return ensemble
        except (Refused, *FAILS):
            continue
    return None


def _check_gradients(few: Ensemble, inputs: Tensor, labels: Tensor, loss: Loss) -> None:
    """Raise where a step on stacked networks fails, or counts what is no class per sample."""
    assert loss.criterion is not None
    few.train()
    each = [part.expand(few.size, *part.shape) for part in (inputs, labels)]
    _, outputs, _ = few.gradients(each[0], each[1], loss.criterion)
    if not labels.is_floating_point() and (labels.ndim != 1 or outputs.ndim != 3):
        raise Refused("labels are not one class per sample; train the networks one by one.")


def _computes_alike(ensemble: Ensemble, models: Sequence[nn.Module], inputs: Tensor) -> bool:
    ensemble.train(False)
    with torch.no_grad():
        together = ensemble(inputs)
        for member, model in zip(together, models, strict=True):
            alone = call_on_input(copy.deepcopy(model).to(inputs.device).eval(), inputs)
            size = alone.abs().amax().clamp_min(torch.finfo(alone.dtype).tiny)
            # Of networks that are not finite from the start neither way computes anything.
            if bool(((member - alone).abs().amax() > ALIKE * size).item()):
                return False
    return True


def _together(
    ensemble: Ensemble, entrants: Sequence[Entrant], course: Course, loss: Loss, steps: int, tell: Tell
) -> list[Run]:
    assert course.samples is not None
    assert loss.criterion is not None
    device, size = ensemble.device, ensemble.size
    samples = replace(
        course.samples, inputs=course.samples.inputs.to(device), labels=course.samples.labels.to(device)
    )
    widest = max(len(course.places(entrants[0].seed, step)) for step in range(min(steps, course.per_epoch)))
    at_once = members_at_once(ensemble, samples, widest, loss.criterion)
    take = Step(ensemble, samples, Adam(), loss.criterion, (), None, at_once=at_once)
    take.rate.copy_(torch.tensor([each.rate for each in entrants], dtype=torch.float64))
    curves = torch.full((2, size, steps), torch.nan, dtype=torch.float64, device=device)
    ensemble.train()
    with seeded_globally(derive(entrants[0].seed, "training")):
        for step in range(steps):
            places = torch.stack([course.places(each.seed, step) for each in entrants]).to(device)
            take.loss_sum.zero_()
            take.hits.zero_()
            take(places)
            means = torch.stack([take.loss_sum, take.hits.double()]) / places.shape[1]
            curves[:, :, step] = torch.where(take.alive, means, torch.nan)
            if step % 10 == 0:
                tell(f"{_names(entrants)}: step {step + 1}/{steps} of {size} networks at once")
    ensemble.train(False)
    if samples.labels.is_floating_point():
        curves[1] = torch.nan
    losses, accuracies, alive = curves[0].cpu(), curves[1].cpu(), take.alive.tolist()
    return [
        Run(
            each.name,
            each.seed,
            each.rate,
            ensemble.member(place),
            losses[place],
            accuracies[place],
            not alive[place],
            True,
        )
        for place, each in enumerate(entrants)
    ]


def _names(entrants: Sequence[Entrant]) -> str:
    return ", ".join(dict.fromkeys(each.name for each in entrants))


# One by one -------------------------------------------------------------------------------------------------


def _alone(
    entrant: Entrant, course: Course, loss: Loss, steps: int, device: str | torch.device, tell: Tell
) -> Run:
    """Train a copy of one network on any batches, with any loss and a penalty."""
    model = copy.deepcopy(entrant.model).to(device).train()
    subject = Subject.of(model, criterion=loss.criterion, loss_fn=loss.loss_fn)
    weights = [each for each in model.parameters() if each.requires_grad]
    if not weights:
        raise Refused(f"{entrant.name} has no trainable parameter; set requires_grad on some.")
    adam = torch.optim.Adam(weights, lr=entrant.rate)
    curves = torch.full((2, steps), torch.nan, dtype=torch.float64)
    diverged = False
    with seeded_globally(derive(entrant.seed, "training")):
        for step in range(steps):
            with outside_inference_mode(course.batch(entrant.seed, step)) as batch:
                batch = onto(batch, device)
                value, accuracy = _loss_and_accuracy(subject, model, batch)
                total = value if entrant.penalty is None else value + entrant.penalty(model)
                if not value.requires_grad:
                    raise Refused(NO_DERIVATIVE)
                adam.zero_grad()
                total.backward()
            # As in an ensemble: a norm that overflows counts as divergence too.
            lengths = [torch.linalg.vector_norm(each.grad) for each in weights if each.grad is not None]
            norm = torch.linalg.vector_norm(torch.stack(lengths)) if lengths else total.detach() * 0
            if not bool(total.isfinite() & norm.isfinite()):
                diverged = True
                break
            curves[0, step], curves[1, step] = float(value.detach()), accuracy
            adam.step()
            if step % 10 == 0:
                tell(f"{entrant.name}, seed {entrant.seed}: step {step + 1}/{steps}")
    model.zero_grad(set_to_none=True)
    return Run(
        entrant.name, entrant.seed, entrant.rate, model.eval(), curves[0], curves[1], diverged, False
    )  # fmt: skip


def _loss_and_accuracy(subject: Subject, model: nn.Module, batch: Any) -> tuple[Tensor, float]:
    if subject.criterion is None:
        return subject.loss_of(model, batch), float("nan")
    output, target = call_on_input(model, batch), target_of(batch)
    loss = criterion_of(subject.criterion, output, target)
    if loss.ndim:
        raise Refused(f"the loss is {tuple(loss.shape)}, not a scalar; reduce it, say with .mean().")
    return loss, accuracy_of(first_tensor(output), target)


def accuracy_of(scores: Tensor | None, target: Any) -> float:
    """The share of targets whose class has the highest score; NaN where there are no classes."""
    if scores is None or not isinstance(target, Tensor):
        return float("nan")
    axis = class_axis(scores, target)
    if axis is None:
        return float("nan")
    return float((scores.detach().argmax(axis) == target).double().mean())
