"""Sums over batches of what a layer takes and gives, and of its gradient; see ``layer_signals``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.measurements.tallies import square_sum
from skiplab.randomness import torch_generator
from skiplab.subjects.weight_layers import unit_axis

ENTRIES = 8192  # numbers of a sample's output in which variation is taken; of more, an error of about 1 %


class MatrixSums:
    """A matrix of weights and the sum of its gradients over batches."""

    def __init__(self, matrix: Tensor) -> None:
        values = matrix.detach()
        count = max(values.numel(), 1)
        self.squares = square_sum(values)
        self.size = (self.squares / count).sqrt()
        self.zeros = (values == 0).sum().double() / count
        self.total: Tensor | float | None = None

    def add(self, gradient: Tensor | None, weight: float) -> None:
        """Take in the gradient of a batch's loss; None where nothing depends on the matrix."""
        if gradient is None:
            new: Tensor | float = 0.0 * weight
        else:
            new = weight * gradient.to(torch.promote_types(gradient.dtype, torch.float32))
        self.total = new if self.total is None else self.total + new

    def gradient(self, whole: float) -> Tensor:
        """‖∂L/∂W‖ / ‖W‖, of batches that weigh ``whole`` together."""
        if self.total is None:
            return torch.tensor(torch.nan)
        squares = square_sum(torch.as_tensor(self.total)).to(self.squares.device)
        return torch.where(squares == 0, 0.0, (squares / self.squares).sqrt() / whole)


@dataclass
class LayerSums:
    """Sums over batches of what one call of a layer takes and gives."""

    matrix: MatrixSums
    taken: Any = 0.0
    taken_count: int = 0
    product: Any = 0.0
    given: Any = 0.0
    given_count: int = 0
    between: dict[int, _Between] = field(default_factory=dict)

    def add(self, part: nn.Module, taken: Tensor, given: Tensor, samples: int) -> None:
        """Take in what the layer made of a batch of so many samples."""
        self.taken = self.taken + square_sum(taken)
        self.taken_count += taken.numel()
        self.given = self.given + square_sum(given)
        self.given_count += given.numel()
        self.product = self.product + square_sum(_without_bias(part, given))
        rows = _by_sample(given, samples)
        if rows is not None:
            self.between.setdefault(rows.shape[1], _Between()).add(rows)

    @property
    def gain(self) -> Tensor:
        """RMS(W x) / RMS(x)."""
        return (_mean(self.product, self.given_count) / _mean(self.taken, self.taken_count)).sqrt()

    @property
    def output(self) -> Tensor:
        """RMS(W x + b)."""
        return _mean(self.given, self.given_count).sqrt()

    @property
    def variation(self) -> Tensor:
        """The share of the outputs' mean square that differs between samples."""
        # Samples of one shape are compared with each other: sentences differ in length from batch to batch.
        several = [each for each in self.between.values() if each.count > 1]
        if not several:
            return torch.tensor(torch.nan)
        differing = torch.stack([each.differing for each in several]).sum()
        squares = torch.stack([each.squares for each in several]).sum()
        return torch.where(squares == 0, 0.0, differing / squares)


class _Between:
    """How far a layer's outputs (samples, numbers) differ between samples."""

    def __init__(self) -> None:
        self.count = 0
        self.first: Tensor | None = None

    def add(self, rows: Tensor) -> None:
        if rows.shape[1] > ENTRIES:
            stream = torch_generator("variation", rows.shape[1])
            rows = rows[:, torch.randint(rows.shape[1], (ENTRIES,), generator=stream).to(rows.device)]
        rows = (rows.abs() if rows.is_complex() else rows).double()
        if self.first is None:
            self.first = rows[0].clone()  # not a view, which would keep the whole batch
            self.sums = torch.zeros_like(self.first)
            self.squares = self.away = torch.zeros((), dtype=rows.dtype, device=rows.device)
        # Moments about the first sample: where all are equal their difference is 0, and not what rounding leaves.
        moved = rows - self.first
        self.count += len(rows)
        self.squares = self.squares + rows.square().sum()
        self.sums = self.sums + moved.sum(0)
        self.away = self.away + moved.square().sum()

    @property
    def differing(self) -> Tensor:
        return (self.away - self.sums.square().sum() / self.count).clamp_min(0)


def _without_bias(part: Any, given: Tensor) -> Tensor:
    """W x of what a layer gave, by subtraction: layers of other libraries do more to their weights than multiply."""
    bias = getattr(part, "bias", None)
    if not isinstance(bias, Tensor):
        return given
    return given - bias.detach().reshape(-1, *[1] * (-1 - unit_axis(part)))


def _by_sample(values: Tensor, samples: int) -> Tensor | None:
    """Values as (samples, numbers), where the axis of samples can be told: first, second, or first in pieces."""
    if values.ndim == 0 or values.numel() == 0:
        return None
    if len(values) == samples:
        return values.reshape(samples, -1)
    if values.ndim > 2 and values.shape[1] == samples:  # a sequence's steps first
        return values.transpose(0, 1).reshape(samples, -1)
    return values.reshape(samples, -1) if len(values) % samples == 0 else None


def _mean(squares: Any, count: int) -> Tensor:
    return torch.as_tensor(squares, dtype=torch.float64) / count if count else torch.tensor(torch.nan)
