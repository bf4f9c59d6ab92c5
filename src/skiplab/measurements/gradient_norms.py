"""How large the loss gradient is in each layer's activities (orhan2017, figure 8a).

For layer l the quantity is the mean over samples of ‖∂L/∂x_l‖₂, with L the loss of the whole batch as the
criterion reduces it. Gradients that vanish show as a norm that falls towards the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skiplab.checks import require
from skiplab.ensembles import Ensemble, Subject
from skiplab.ensembles.subject import Batch, Criterion, LossFunction, batch_size, batches_of


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

        A dead layer has norm 0 and slope +∞, since its gradient has vanished altogether; a gradient that is
        not finite has no slope (NaN).
        """
        logs = self.mean.double().log()
        position = torch.arange(len(self.layers), dtype=logs.dtype, device=logs.device)
        position = position - position.mean()
        slope = (logs - logs.mean(1, keepdim=True)) @ position / (position @ position)
        slope = torch.where((self.mean == 0).any(1), torch.inf, slope)
        return torch.where(self.mean.isfinite().all(1), slope, torch.nan)


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
        require(batch_size(batch) > 0, "a batch has no samples; pass batches of at least one.")
        gradients = subject.activity_gradients(batch, layers)
        require(
            names in ((), tuple(gradients)), "the batches run different layers; name common ones in layers."
        )
        names = tuple(gradients)
        lengths = {name: g.shape[1] for name, g in gradients.items()}
        for name, length in lengths.items():
            first = lengths[names[0]]
            require(
                length == first,
                f"layers {names[0]!r} and {name!r} have {first} and {length} samples; measure them one by one.",
            )
        # (E, layers, B): the norm over everything but the seed and sample axes, in float64 since the squares of
        # a vanishing gradient are 0 in float32.
        norms = torch.stack([_norms(g) for g in gradients.values()], dim=1)
        sums = torch.stack([norms.sum(2), norms.square().sum(2)])
        total = sums if total is None else total + sums
        samples += norms.shape[2]
    assert total is not None
    mean, square = total / samples
    variance = (square - mean.square()).clamp_min(0) / (samples - 1) if samples > 1 else mean * torch.nan
    return GradientNorms(names, mean, variance.sqrt(), samples)


def _norms(gradient: Tensor) -> Tensor:
    flat = gradient.reshape(*gradient.shape[:2], -1)
    return torch.linalg.vector_norm(flat, dim=2, dtype=torch.float64)
