"""Whether inputs and targets are centred, and columns of inputs of one scale, as far as it matters to the network.

A network whose inputs are mostly a constant sees nearly the same sample again and again, and one whose squared error
starts at a hundred times the variance of its targets has to learn their mean first. A network may take care of both
itself, by normalising; so what is looked at is what reaches its output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import Refused
from skiplab.diagnosis.learned import LEARNED, best_constant, is_squared_error
from skiplab.diagnosis.losses import cross_entropy_of_scores
from skiplab.diagnosis.patient import Patient
from skiplab.randomness import torch_generator
from skiplab.subjects.batches import target_of
from skiplab.subjects.subject import call_on_input, first_tensor

FEWEST = 4  # samples, and columns, among which a spread means something


@dataclass(frozen=True)
class Preparation:
    """What inputs and targets are like; NaN where it cannot be said, as of words.

    ``input_variation`` and ``output_variation`` are the shares of the mean square that differ between samples.
    Beside the narrower half of the columns together, ``widest`` varies ``spread`` times as much and, varied as it
    varies in the data, moves the output ``influence`` times as much. Over the targets' variance, ``start`` is the
    squared error and ``targets`` the targets' mean square. ``reach`` is the targets' standard deviation over the
    outputs', or the targets' own where that is less.
    """

    input_variation: float = math.nan
    output_variation: float = math.nan
    spread: float = math.nan
    influence: float = math.nan
    widest: int = -1
    start: float = math.nan
    targets: float = math.nan
    reach: float = math.nan


def prepared(patient: Patient) -> Preparation:
    """Look at the batch, and at what the network makes of it."""
    if patient.samples < FEWEST:
        return Preparation()
    start, targets, reach = _start(patient)
    of_targets = Preparation(start=start, targets=targets, reach=reach)
    batch = patient.batch
    inputs = batch[0] if isinstance(batch, tuple | list) else batch
    # A loss function of the user's may prepare the batch itself.
    by_us = patient.loss.loss_fn in (None, cross_entropy_of_scores)
    if not by_us or not isinstance(inputs, Tensor) or not inputs.is_floating_point():
        return of_targets
    try:
        output, slopes = _output_and_slopes(patient, inputs)
    except (Refused, RuntimeError):  # such as an operation that has no derivative
        return of_targets
    if _explains(output, patient):
        return of_targets
    spread, influence, widest = math.nan, math.nan, -1
    if inputs.ndim in (2, 3) and inputs.shape[-1] >= FEWEST and slopes is not None:
        spread, influence, widest = _widest(inputs, slopes)
    return Preparation(variation(inputs), variation(output), spread, influence, widest, start, targets, reach)


def variation(values: Tensor) -> float:
    """The share of the mean square that differs between samples, (n, …); NaN where nothing differs."""
    values = values.detach().double()
    total, differs = float(values.square().mean()), float(values.var(0, unbiased=False).mean())
    return differs / total if differs > 0 else math.nan


def _start(patient: Patient) -> tuple[float, float, float]:
    """The squared error and the targets' mean square over their variance, and how far the outputs have to reach.

    Other losses grow less with an offset.
    """
    constant = best_constant(patient) if is_squared_error(patient.loss.criterion) else None
    if not constant:
        return math.nan, math.nan, math.nan
    try:
        with torch.no_grad():
            loss = float(patient.subject.losses(patient.batch)[0])
            output = _numbers(patient.subject.outputs(patient.batch)[0]).double()
    except Refused:
        return math.nan, math.nan, math.nan
    wide, now = constant**0.5, float(output.var(0, unbiased=False).mean().sqrt())
    # Targets of usual size are within reach of an output of zeros: a head may start at 0.
    reach = min(wide, wide / now) if now > 0 else wide
    return loss / constant, float(target_of(patient.batch).double().square().mean()) / constant, reach


def _output_and_slopes(patient: Patient, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
    """The output, and the derivative of a random sum of its numbers in the inputs, None where there is none."""
    subject = patient.subject
    with subject.borrowed(), torch.enable_grad():
        leaf = inputs.detach().clone().requires_grad_()
        batch = (leaf, *patient.batch[1:]) if isinstance(patient.batch, tuple | list) else leaf
        (output,) = subject.map_models(lambda model: _numbers(call_on_input(model, batch)))
        weights = torch.randn(output.shape, generator=torch_generator("preparation"), dtype=torch.float64)
        value = (output * weights.to(output)).sum()
        found = torch.autograd.grad(value, leaf, allow_unused=True) if value.requires_grad else (None,)
    return output.detach(), found[0]


def _numbers(output: object) -> Tensor:
    """The first tensor that a network returns, with a row per sample."""
    found = first_tensor(output)
    if found is None or not found.is_floating_point() or found.ndim == 0:
        raise Refused("the network returns no tensor of real numbers; wrap it to return one.")
    return found


def _explains(output: Tensor, patient: Patient) -> bool:
    """Whether the outputs are near numbers that are the targets: whatever the loss is, the network has learned."""
    try:
        target = target_of(patient.batch)
    except Refused:
        return False
    if not isinstance(target, Tensor) or not target.is_floating_point() or target.shape != output.shape:
        return False
    wanted = target.double()
    missed = (output.double() - wanted).square().mean()
    return bool(missed < LEARNED * wanted.var(0, unbiased=False).mean())


def _widest(inputs: Tensor, slopes: Tensor) -> tuple[float, float, int]:
    """How much more one column varies and moves the output than the narrower half together, and which it is.

    Both are asked for: a network may well use one column more than others of the same spread. Constant columns, and
    those that the network does not use, are left out.
    """
    values = inputs.detach().double().flatten(0, -2)
    spread = values.std(0)
    moved = spread * slopes.double().flatten(0, -2).square().mean(0).sqrt()
    known = moved > 0
    if int(known.sum()) < FEWEST:
        return math.nan, math.nan, -1
    filled = (values != 0).double().mean(0)
    ratios = torch.stack([each / _narrower_half(each[known], filled[known]) for each in (spread, moved)])
    widest = int(ratios.amin(0).where(known, 0.0).argmax())
    return float(ratios[0, widest]), float(ratios[1, widest]), widest


def _narrower_half(spread: Tensor, filled: Tensor) -> Tensor:
    """The root of the summed squares of the smallest spreads, of columns that hold half of what is not 0.

    Small columns say something together, and of counts of words most columns are nearly always 0: a median column
    would be one that hardly any sample has.
    """
    order = spread.argsort()
    below = filled[order].cumsum(0) <= filled.sum() / 2
    below[0] = True
    return spread[order][below].square().sum().sqrt()
