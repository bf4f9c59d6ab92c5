"""Deflation: known eigenvectors vanish, the rest stays, and the second moment's error falls."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import (
    deflated,
    dense_matrix,
    extreme_eigenvalues,
    moments_of,
    orthonormal,
    probes,
    project_out,
)


def test_the_given_eigenvalues_become_zero_and_the_others_stay(generator, with_eigenvalues):
    eigenvalues = torch.tensor([[9.0, 7, 2, 1, -1, -2], [8.0, 6, 3, 2, 1, -4]])
    matrices = with_eigenvalues(eigenvalues)
    top = extreme_eigenvalues(lambda v: v @ matrices, 6, 2, generator, lead=(2,), vectors=True)
    rest = dense_matrix(deflated(lambda v: v @ matrices, 3 * top.vectors), 6, lead=(2,))
    expected = torch.tensor([[-2.0, -1, 0, 0, 1, 2], [-4.0, 0, 0, 1, 2, 3]]).double()
    torch.testing.assert_close(torch.linalg.eigvalsh(rest), expected, rtol=0, atol=1e-10)


def test_the_second_moments_error_falls_more_than_tenfold(generator, with_eigenvalues):
    eigenvalues = torch.cat([0.3 * torch.randn(290, generator=generator), torch.linspace(5, 60, 10)]).double()
    matrix = with_eigenvalues(eigenvalues)
    exact = eigenvalues.square().mean()

    def product(vectors):
        return vectors @ matrix

    top = extreme_eigenvalues(product, 300, 10, generator, vectors=True)
    start = probes((100,), 10, 300, generator, kind="normal")
    plain = moments_of(product, start, order=2).mean[:, 1]
    rest = deflated(product, top.vectors)
    outside = moments_of(rest, start, order=2).mean[:, 1]
    joined = outside + top.values.square().sum() / 300
    error, smaller = ((found - exact).square().mean().sqrt() for found in (plain, joined))
    assert smaller < error / 10


def test_projected_probes_see_no_deflated_direction(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.arange(1.0, 31))
    top = extreme_eigenvalues(lambda v: v @ matrix, 30, 3, generator, vectors=True).vectors
    start = project_out(probes((), 50, 30, generator), orthonormal(top))
    assert (start @ top.mT).abs().max() < 1e-12
    # Without the projection every deflated direction counts as an eigenvalue 0.
    inside = moments_of(deflated(lambda v: v @ matrix, top), start, order=1).samples
    assert (inside >= 1).all()


def test_float32_vectors_stay_float32(generator):
    vectors = probes((), 2, 8, generator)
    assert deflated(lambda v: v, vectors)(torch.ones(1, 8)).dtype == torch.float32


def test_dependent_vectors_are_refused():
    with pytest.raises(Refused, match="linearly dependent"):
        deflated(lambda v: v, torch.ones(2, 5))
    with pytest.raises(Refused, match="6 vectors of dimension 5"):
        orthonormal(torch.ones(6, 5))
