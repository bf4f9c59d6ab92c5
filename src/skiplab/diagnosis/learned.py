"""Whether a network has learned its samples already: what it did then counts more than what its state foretells."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis.losses import IGNORED, cross_entropy_of_scores, own_loss
from skiplab.diagnosis.patient import Patient
from skiplab.subjects.batches import target_of

LEARNED = 0.5  # of the loss of the best constant answer; ours


def has_learned(patient: Patient) -> bool:
    """Whether the loss is below half of what the best answer has that is the same for every sample."""
    chance = best_constant(patient)
    if chance is None:
        return False
    try:
        with torch.no_grad():
            loss = float(patient.subject.losses(patient.batch)[0])
    except Refused:  # such as a loss that is not finite
        return False
    return loss < LEARNED * chance


def best_constant(patient: Patient) -> float | None:
    """The loss of the best constant answer: the labels' entropy, the targets' variance; None for other losses."""
    criterion, loss_fn = patient.loss.criterion, patient.loss.loss_fn
    plain = getattr(criterion, "reduction", "mean") == "mean" and getattr(criterion, "weight", None) is None
    by_class = isinstance(criterion, nn.CrossEntropyLoss) or loss_fn in (own_loss, cross_entropy_of_scores)
    try:
        target = target_of(patient.batch)
    except Refused:
        return None
    if not isinstance(target, Tensor) or not plain or not target.numel():
        return None
    if by_class and not target.is_floating_point() and not target.is_complex():
        counted = target[target != IGNORED].flatten()
        shares = counted.unique(return_counts=True)[1].double() / max(counted.numel(), 1)
        return float(torch.special.entr(shares).sum())
    if is_squared_error(criterion) and target.is_floating_point():
        return float(target.double().var(0, unbiased=False).mean())
    return None


def is_squared_error(criterion: object) -> bool:
    """Whether a criterion is the mean squared error, as a module or as a function."""
    return isinstance(criterion, nn.MSELoss) or criterion is F.mse_loss
