"""Stochastic moments against traces of powers."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import moments_of, probes


def test_each_probes_moments_are_its_quadratic_forms(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.randn(30, generator=generator))
    start = 5 * probes((), 3, 30, generator, kind="normal")
    found = moments_of(lambda v: v @ matrix, start, order=5)
    for power in range(1, 6):
        form = ((start @ torch.linalg.matrix_power(matrix, power)) * start).sum(-1) / 25
        torch.testing.assert_close(found.samples[:, power - 1], form)


def test_two_moments_a_product(generator):
    calls = []

    def product(vectors):
        calls.append(1)
        return 2 * vectors

    found = moments_of(product, probes((), 3, 10, generator), order=4)
    assert len(calls) == 2
    torch.testing.assert_close(found.mean, torch.tensor([2.0, 4, 8, 16]).double())


@pytest.mark.parametrize("kind", ["normal", "rademacher"])
def test_means_converge_with_honest_standard_errors(kind, generator, with_eigenvalues):
    matrices = with_eigenvalues(torch.randn(1, 50, generator=generator)).expand(200, 50, 50)
    found = moments_of(lambda v: v @ matrices, probes((200,), 20, 50, generator, kind=kind))
    exact = torch.stack([torch.linalg.matrix_power(matrices[0], j).trace() / 50 for j in range(1, 5)])
    assert ((found.mean.mean(0) - exact).abs() < 4 * found.mean.std(0) / 200**0.5).all()
    within = ((found.mean - exact).abs() <= 2 * found.stderr).double().mean(0)
    assert ((within > 0.85) & (within <= 1)).all()


def test_tiny_and_huge_operators_neither_vanish_nor_overflow_in_float32(generator):
    for factor in (1e-15, 1e15):
        start = probes((), 2, 10, generator, dtype=torch.float32)
        found = moments_of(lambda v, f=factor: f * v, start, order=8)
        expected = torch.tensor([factor**j for j in range(1, 9)], dtype=torch.float64)
        torch.testing.assert_close(found.mean, expected, rtol=1e-5, atol=0)


def test_the_zero_operator_has_zero_moments(generator):
    assert moments_of(torch.zeros_like, probes((), 10, 10, generator)).mean.tolist() == [0, 0, 0, 0]


def test_order_zero_is_refused(generator):
    with pytest.raises(Refused, match="order is 0"):
        moments_of(lambda v: v, probes((), 10, 10, generator), order=0)
