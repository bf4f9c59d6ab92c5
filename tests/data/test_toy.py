"""Toy inputs have the moments they are drawn from."""

from __future__ import annotations

import pytest
import torch

from skiplab import data
from skiplab.checks import Refused
from skiplab.randomness import torch_generator


def test_the_papers_mixture_is_the_default() -> None:
    got = data.gaussian_mixture(torch_generator("tests", "mixture"))
    assert got.inputs.shape == (10_000, 50)
    assert got.inputs.dtype == torch.float32
    assert torch.bincount(got.labels).tolist() == [1_000] * 10
    assert not torch.equal(got.labels, torch.arange(10_000) % 10)
    assert data.gaussian_mixture(torch_generator(1), classes=50).classes == 50


def test_moments_within_and_between_classes() -> None:
    got = data.gaussian_mixture(
        torch_generator("tests", "moments"),
        classes=40,
        dimensions=60,
        samples=20_000,
        separation=3.0,
        dtype=torch.float64,
    )
    means = torch.stack([got.inputs[got.labels == label].mean(0) for label in range(40)])
    within = (got.inputs - means[got.labels]).var(correction=40).item()
    # Standard errors: √(2/1.2e6) = .0013 for the noise, and 9·√(2/2400) = .26 for the means' variance.
    assert within == pytest.approx(1, abs=5 * 0.0013)
    assert means.square().mean().item() == pytest.approx(9, abs=5 * 0.26)


def test_random_covariances_differ_by_class_and_are_the_identity_on_average() -> None:
    sizes = {"classes": 30, "dimensions": 8, "samples": 60_000}
    got = data.gaussian_mixture(
        torch_generator("tests", "covariances"), covariances="random", dtype=torch.float64, **sizes
    )
    found = torch.stack([got.inputs[got.labels == label].T.cov() for label in range(30)])
    # Σ has the mean I and entries of variance 2/8 (diagonal) or 1/8, before 1/30 classes and 1/2,000 samples.
    average = found.mean(0) - torch.eye(8)
    assert average.diagonal().abs().max() < 5 * (0.25 / 30 + 6 / 60_000) ** 0.5
    assert average.abs().max() < 5 * (0.25 / 30 + 6 / 60_000) ** 0.5
    apart = found.diagonal(dim1=1, dim2=2).var().item()
    assert apart == pytest.approx(0.25, abs=0.1)  # of unit covariances .001
    unit = data.gaussian_mixture(torch_generator("tests", "covariances"), dtype=torch.float64, **sizes)
    assert torch.equal(unit.labels, got.labels)


def test_a_seed_names_a_mixture() -> None:
    first, again = (data.gaussian_mixture(torch_generator(3), samples=100) for _ in range(2))
    other = data.gaussian_mixture(torch_generator(4), samples=100)
    assert torch.equal(first.inputs, again.inputs)
    assert first.fingerprint == again.fingerprint != other.fingerprint


def test_the_grid() -> None:
    points = data.grid(dtype=torch.float64)
    expected = -2 + 4 * torch.arange(256, dtype=torch.float64) / 255
    torch.testing.assert_close(points[:, 0], expected, atol=1e-15, rtol=0)
    assert data.grid(5, 0, 1).flatten().tolist() == [0, 0.25, 0.5, 0.75, 1]


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(Refused, match="samples is 5, but must be at least 10"):
        data.gaussian_mixture(torch_generator(0), samples=5)
    with pytest.raises(Refused, match="covariances 'rand' is unknown"):
        data.gaussian_mixture(torch_generator(0), covariances="rand")
    with pytest.raises(Refused, match="points is 1, but must be at least 2"):
        data.grid(1)
