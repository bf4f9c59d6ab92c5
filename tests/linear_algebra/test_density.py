"""Smoothed densities against sums of Gaussians and smoothed exact spectra."""

from __future__ import annotations

import math

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import gauss, lanczos, probes, spectral_density


def test_one_node_gives_one_gaussian():
    nodes, weights = torch.tensor([[2.0]]).double(), torch.tensor([[1.0]]).double()
    found = spectral_density(nodes, weights, grid=torch.tensor([2.0, 2.5]), width=0.5)
    peak = 1 / (0.5 * math.sqrt(2 * math.pi))
    torch.testing.assert_close(found.density, torch.tensor([peak, peak * math.exp(-0.5)]).double())
    assert found.stderr.isnan().all()


def test_the_density_integrates_to_one_and_leading_axes_equal_a_loop(generator):
    nodes = torch.randn(2, 3, 20, generator=generator, dtype=torch.float64).sort(-1).values
    weights = torch.rand(2, 3, 20, generator=generator, dtype=torch.float64)
    weights /= weights.sum(-1, keepdim=True)
    found = spectral_density(nodes, weights, points=2000)
    assert found.density.shape == (2, 2000)
    torch.testing.assert_close(
        torch.trapezoid(found.density, found.grid), torch.ones(2).double(), rtol=0, atol=1e-4
    )
    for member in range(2):
        alone = spectral_density(nodes[member], weights[member], grid=found.grid, width=found.width)
        torch.testing.assert_close(alone.density, found.density[member])
        torch.testing.assert_close(alone.stderr, found.stderr[member])


def test_it_converges_to_the_smoothed_spectrum_within_its_standard_error(generator, with_eigenvalues):
    eigenvalues = torch.cat([torch.linspace(-1, 1, 150), torch.linspace(4, 6, 50)]).double()
    matrix = with_eigenvalues(eigenvalues)
    rule = gauss(lanczos(lambda v: v @ matrix, probes((), 30, 200, generator), 80))
    found = spectral_density(rule.nodes, rule.weights, width=0.3, points=100)
    exact = spectral_density(eigenvalues[None], torch.full((1, 200), 1 / 200), grid=found.grid, width=0.3)
    error = (found.density - exact.density).abs()
    assert (error <= 4 * found.stderr + 1e-4).all()
    assert error.max() < 0.1 * exact.density.max()


def test_the_zero_operator_has_a_density(generator):
    rule = gauss(lanczos(torch.zeros_like, probes((), 2, 9, generator), 5))
    found = spectral_density(rule.nodes, rule.weights)
    assert found.width > 0
    assert torch.trapezoid(found.density, found.grid) == pytest.approx(1, abs=1e-3)


def test_a_width_that_is_not_positive_is_refused():
    with pytest.raises(Refused, match="width is 0"):
        spectral_density(torch.ones(1, 1), torch.ones(1, 1), width=0)
