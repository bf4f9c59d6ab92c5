"""From parts of an output to shares, effective depth and their intervals.

Over the samples of a batch, taken as draws, D = Σ r c_r² / Σ c_r² is a ratio of means: its error is that of n − D m,
n and m being a sample's two sums, over the mean of m. Where t was drawn too (``formal.Rotation``), angles are a
second source of error, common to all samples: variances of samples' means and of angles' means add, less that of
single entries, which both hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.measurements.estimate import LEVEL, Estimate


@dataclass(frozen=True)
class Split:
    """What one network's output holds of each length: ``shares`` (lengths,), ``depth`` and ``cancellation`` ()."""

    shares: Estimate
    depth: Estimate
    cancellation: Tensor


def exact(parts: Tensor) -> Split:
    """Of parts (lengths, samples, …)."""
    energy = parts.flatten(2).square().sum(2).double().T  # (samples, lengths)
    total = energy.sum(1)
    whole = parts.sum(0).flatten(1).double().square().sum()
    lengths = torch.arange(energy.shape[1], device=energy.device, dtype=energy.dtype)
    depth = _ratio((energy @ lengths)[:, None], total[:, None])
    shares = [_ratio(each[:, None], total[:, None]) for each in energy.T]
    return Split(stacked(shares), depth, total.sum() / whole)


def sampled(values: Tensor, slopes: Tensor, angles: Tensor, lengths: int, whole: Tensor) -> Split:
    """Of F and dF/dθ, complex (angles, samples, …), at random angles; ``whole`` is F(1), the output itself.

    c_r is the mean of Re(F e^{−irθ}), and its square is freed of the mean's own variance by leaving out the products
    of an angle with itself; the shares' errors over angles are jackknifed.
    """
    values, slopes = values.flatten(2), slopes.flatten(2)
    mass = values.abs().square().sum(2).double().T  # (samples, angles)
    moment = (values.conj() * slopes / 1j).real.sum(2).double().T
    depth = _ratio(moment, mass)
    shares = []
    for r in range(lengths):
        turned = (values * torch.exp(-1j * r * angles)[:, None, None]).real.double()
        shares.append(_squared_mean_share(turned, mass))
    return Split(stacked(shares), depth, mass.mean(1).sum() / whole.double().square().sum())


def _squared_mean_share(draws: Tensor, mass: Tensor) -> Estimate:
    """‖E draws‖² over samples, (angles, samples, …), as a share of the mass (samples, angles)."""
    count = len(draws)
    every, own = draws.sum(0), draws.square().sum(2)  # (samples, …), (angles, samples)
    pairs = every.square().sum(1) - own.sum(0)
    by_sample = pairs / (count * (count - 1))
    without = ((every - draws).square().sum(2) - (own.sum(0) - own)) / ((count - 1) * (count - 2))
    share = by_sample.sum() / mass.mean(1).sum()
    left = (mass.sum(1, keepdim=True) - mass).sum(0) / (count - 1)
    jackknifed = without.sum(1) / left
    angles = (count - 1) / count * (jackknifed - jackknifed.mean()).square().sum()
    if len(mass) < 2:
        return Estimate(share, share - torch.inf, share + torch.inf)
    error = by_sample - share * mass.mean(1)
    samples = error.var() / len(error) / mass.mean().square()
    return _interval(share, angles + samples, min(count, len(error)))


def _ratio(above: Tensor, below: Tensor) -> Estimate:
    """Σ above / Σ below of (samples, angles), with its interval; one angle counts as none, the value being exact."""
    samples, angles = above.shape
    ratio = above.sum() / below.sum()
    if samples < 2:
        return Estimate(ratio, ratio - torch.inf, ratio + torch.inf)
    error = (above - ratio * below) / below.mean()
    variance = error.mean(1).var() / samples
    if angles > 1:
        cells = error.var() / error.numel()
        variance = (variance + error.mean(0).var() / angles - cells).clamp_min(cells)
    return _interval(ratio, variance, samples if angles == 1 else min(samples, angles))


def _interval(value: Tensor, variance: Tensor, count: int) -> Estimate:
    if count < 2 or not bool(variance.isfinite()):
        return Estimate(value, value - torch.inf, value + torch.inf)
    from scipy import stats

    half = float(stats.t.ppf(0.5 + LEVEL / 2, count - 1)) * math.sqrt(float(variance))
    return Estimate(value, value - half, value + half)


def stacked(several: list[Estimate]) -> Estimate:
    """Estimates of one shape along a new first axis."""
    return Estimate(
        torch.stack([each.value for each in several]),
        torch.stack([each.low for each in several]),
        torch.stack([each.high for each in several]),
    )
