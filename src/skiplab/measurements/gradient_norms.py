"""How large the loss gradient is in each layer's activities (orhan2017, figure 8a).

For layer l the quantity is the mean over samples of ‖∂L/∂x_l‖₂, with L the loss of the whole batch as the
criterion reduces it. Gradients that vanish show as a norm that falls towards the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skiplab.ensembles import Ensemble, Subject
from skiplab.ensembles.subject import Batch, Criterion, LossFunction, batches_of


@dataclass(frozen=True)
class GradientNorms:
    """Mean norms with standard errors over samples, (E, layers); ``slope`` sums them up."""

    layers: tuple[str, ...]
    mean: Tensor
    stderr: Tensor
    samples: int

    @property
    def slope(self) -> Tensor:
        """Least-squares slope (E,) of log norm against layer number: > 0 means decay towards the input.

        A dead layer has norm 0 and slope +∞, since its gradient has vanished altogether.
        """
        logs = self.mean.double().log()
        position = torch.arange(len(self.layers), dtype=logs.dtype, device=logs.device)
        position = position - position.mean()
        slope = (logs - logs.mean(1, keepdim=True)) @ position / (position @ position)
        return torch.where(torch.isfinite(logs).all(1), slope, torch.inf)


def gradient_norms(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    train_mode: bool = False,
) -> GradientNorms:
    """Measure the mean gradient norm in the named layers' activities (default: the blocks).

    >>> norms = gradient_norms(model, (x, y), criterion=torch.nn.CrossEntropyLoss())
    >>> norms.mean, norms.slope
    """
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn, train_mode=train_mode)
    total: Tensor | None = None
    names: tuple[str, ...] = ()
    samples = 0
    for batch in batches_of(batches):
        gradients = subject.activity_gradients(batch, layers)
        names = tuple(gradients)
        # (E, layers, B): the norm over everything but the seed and sample axes.
        norms = torch.stack([g.flatten(2).norm(dim=2).double() for g in gradients.values()], dim=1)
        sums = torch.stack([norms.sum(2), norms.square().sum(2)])
        total = sums if total is None else total + sums
        samples += norms.shape[2]
    assert total is not None
    mean, square = total / samples
    variance = (square - mean.square()).clamp_min(0) * samples / max(samples - 1, 1)
    return GradientNorms(names, mean, (variance / samples).sqrt(), samples)
