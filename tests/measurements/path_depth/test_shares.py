"""Intervals of shares and effective depth hold the truth as often as they say."""

from __future__ import annotations

import pytest
import torch

from skiplab.measurements.path_depth.shares import exact, sampled
from skiplab.randomness import torch_generator

SIZES = torch.tensor([0.2, 0.7, 1.0, 0.6, 0.1], dtype=torch.float64)  # of parts by length
TRUE = SIZES.square() / SIZES.square().sum()
DEPTH = float(TRUE @ torch.arange(5, dtype=torch.float64))
REPEATS = 400


def drawn(repeat: int, samples: int = 40) -> torch.Tensor:
    """Parts (lengths, samples, outputs) whose sizes differ from sample to sample."""
    stream = torch_generator(repeat, "parts")
    own = torch.exp(0.3 * torch.randn(samples, generator=stream, dtype=torch.float64))
    noise = torch.randn(5, samples, 3, generator=stream, dtype=torch.float64)
    return SIZES[:, None, None] * own[:, None] * noise


def turned(parts: torch.Tensor, angles: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    r = torch.arange(len(parts), dtype=torch.float64)
    turns = torch.exp(1j * angles[:, None] * r)
    whole = parts.to(torch.complex128)
    return torch.einsum("ar,rbc->abc", turns, whole), torch.einsum("ar,rbc->abc", 1j * r * turns, whole)


def share_held(lows: list[float], highs: list[float], truth: float) -> float:
    return sum(low <= truth <= high for low, high in zip(lows, highs, strict=True)) / len(lows)


def test_intervals_over_samples_cover() -> None:
    found = [exact(drawn(repeat)) for repeat in range(REPEATS)]
    depths = [each.depth for each in found]
    covered = share_held([e.low.item() for e in depths], [e.high.item() for e in depths], DEPTH)
    assert 0.91 <= covered <= 0.98
    longest = [each.shares[2] for each in found]
    covered = share_held([e.low.item() for e in longest], [e.high.item() for e in longest], TRUE[2].item())
    assert 0.91 <= covered <= 0.98


def test_intervals_over_samples_and_angles_cover() -> None:
    found = []
    for repeat in range(REPEATS):
        angles = (
            2 * torch.pi * torch.rand(12, generator=torch_generator(repeat, "angles"), dtype=torch.float64)
        )
        parts = drawn(repeat)
        found.append(sampled(*turned(parts, angles), angles, 5, parts.sum(0)))
    depths = [each.depth for each in found]
    covered = share_held([e.low.item() for e in depths], [e.high.item() for e in depths], DEPTH)
    assert 0.92 <= covered <= 0.995
    shares = [each.shares[2] for each in found]
    covered = share_held([e.low.item() for e in shares], [e.high.item() for e in shares], TRUE[2].item())
    assert 0.92 <= covered <= 1
    mean = torch.stack([each.shares.value for each in found]).mean(0)
    torch.testing.assert_close(mean, TRUE, atol=0.02, rtol=0)  # no bias from squaring a mean


def test_few_angles_leave_wider_intervals_than_many() -> None:
    parts = drawn(0)
    widths = []
    for count in (4, 64):
        angles = 2 * torch.pi * torch.rand(count, generator=torch_generator("few"), dtype=torch.float64)
        depth = sampled(*turned(parts, angles), angles, 5, parts.sum(0)).depth
        widths.append((depth.high - depth.low).item())
    assert widths[0] > widths[1]


def test_parts_that_oppose_each_other_have_a_cancellation_above_one() -> None:
    part = torch.ones(1, 4, 2, dtype=torch.float64)
    assert exact(torch.cat([part, part])).cancellation.item() == pytest.approx(0.5)
    assert exact(torch.cat([part, -0.5 * part])).cancellation.item() == pytest.approx(5.0)
