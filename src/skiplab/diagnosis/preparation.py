"""How the data are prepared: whether inputs and targets are centred and their columns alike, as far as it matters.

A network whose inputs are mostly a constant sees nearly the same sample again and again, and one whose squared error
starts at a hundred times the variance of its targets has to learn their mean first. A network may take care of both
itself, by normalising; so what is looked at is what reaches its output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis.learned import best_constant
from skiplab.diagnosis.patient import Patient
from skiplab.randomness import torch_generator
from skiplab.subjects.subject import first_tensor

FEWEST = 4  # samples, and columns, among which a spread means something


@dataclass(frozen=True)
class Preparation:
    """What inputs and targets are like; NaN where it cannot be said, as of words.

    ``input_variation`` and ``output_variation`` are the shares of the mean square that differ between samples.
    ``influence`` is how much more the column ``widest`` moves the output than the median column, each varied as it
    varies in the data. ``start`` is the squared error over that of the best constant answer.
    """

    input_variation: float = math.nan
    output_variation: float = math.nan
    influence: float = math.nan
    widest: int = -1
    start: float = math.nan


def prepared(patient: Patient) -> Preparation:
    """Look at the batch, and at what the network makes of it."""
    start = _start(patient)
    batch = patient.batch
    inputs = batch[0] if isinstance(batch, tuple | list) else batch
    if not isinstance(inputs, Tensor) or not inputs.is_floating_point() or len(inputs) < FEWEST:
        return Preparation(start=start)
    try:
        output, slopes = _output_and_slopes(patient, inputs)
    except (Refused, RuntimeError):  # such as an operation that has no derivative
        return Preparation(start=start)
    influence, widest = math.nan, -1
    if inputs.ndim in (2, 3) and inputs.shape[-1] >= FEWEST and slopes is not None:
        influence, widest = _influence(inputs, slopes)
    return Preparation(variation(inputs), variation(output), influence, widest, start)


def variation(values: Tensor) -> float:
    """The share of the mean square that differs between samples, (n, …)."""
    values = values.detach().double()
    total = float(values.square().mean())
    return float(values.var(0, unbiased=False).mean()) / total if total > 0 else math.nan


def _start(patient: Patient) -> float:
    """The loss over the best constant answer's, for squared errors; other losses do not grow with an offset."""
    if not isinstance(patient.loss.criterion, nn.MSELoss):
        return math.nan
    constant = best_constant(patient)
    if not constant:
        return math.nan
    try:
        with torch.no_grad():
            return float(patient.subject.losses(patient.batch)[0]) / constant
    except Refused:
        return math.nan


def _output_and_slopes(patient: Patient, inputs: Tensor) -> tuple[Tensor, Tensor | None]:
    """The output, and the derivative of a random sum of its numbers in the inputs, None where there is none."""
    subject = patient.subject
    with subject.borrowed(), torch.enable_grad():
        leaf = inputs.detach().clone().requires_grad_()
        batch = (leaf, *patient.batch[1:]) if isinstance(patient.batch, tuple | list) else leaf
        (output,) = subject.map_models(lambda model: _tensor(subject.call(model, batch)))
        weights = torch.randn(output.shape, generator=torch_generator("preparation"), dtype=torch.float64)
        value = (output * weights.to(output)).sum()
        found = torch.autograd.grad(value, leaf, allow_unused=True) if value.requires_grad else (None,)
    return output.detach(), found[0]


def _tensor(output: object) -> Tensor:
    found = first_tensor(output)
    if found is None or not found.is_floating_point() or found.ndim == 0:
        raise Refused("the network returns no tensor of real numbers; wrap it to return one.")
    return found


def _influence(inputs: Tensor, slopes: Tensor) -> tuple[float, int]:
    """How many times the median column's influence the largest has, and which it is; constant columns have none."""
    spread = inputs.detach().double().flatten(0, -2).std(0)
    moved = spread * slopes.double().flatten(0, -2).square().mean(0).sqrt()
    known = moved[moved > 0]
    if len(known) < FEWEST:
        return math.nan, -1
    return float(known.max() / known.median()), int(moved.argmax())
