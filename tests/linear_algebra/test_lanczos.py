"""Lanczos against dense projections, loops, and runs in one piece."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import extend, gauss, lanczos, probes


def dense(tridiagonal):
    """The tridiagonal matrices (*lead, k, m, m)."""
    beside = torch.diag_embed(tridiagonal.off_diagonal, 1)
    return torch.diag_embed(tridiagonal.diagonal) + beside + beside.mT


def test_the_basis_is_orthonormal_and_projects_the_operator_to_the_tridiagonal(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.cat([torch.linspace(-1e-3, 1e-3, 90), torch.linspace(1, 700, 10)]))
    found = lanczos(lambda v: v @ matrix, probes((), 3, 100, generator), 40, keep_basis=True)
    basis = found.basis
    assert (basis @ basis.mT - torch.eye(40)).abs().max() < 1e-13
    assert (basis @ matrix @ basis.mT - dense(found)).abs().max() < 700 * 1e-13


def test_the_recurrence_holds_with_its_residual(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.randn(60, generator=generator))
    start = probes((), 2, 60, generator)
    found = lanczos(lambda v: v @ matrix, start, 15, keep_basis=True)
    torch.testing.assert_close(found.basis[:, 0], start)
    residual = found.basis @ matrix - dense(found) @ found.basis
    assert residual[:, :-1].abs().max() < 1e-13
    torch.testing.assert_close(residual[:, -1].norm(dim=-1), found.last_off_diagonal)


def test_a_float32_basis_moves_the_tridiagonal_by_far_less_than_float32_rounding(generator):
    # A diagonal operator has eigenvectors on single coordinates, where float32 sums lose the most.
    eigenvalues = torch.cat([torch.logspace(-4, -1, 2970), torch.logspace(0, 2.875, 30)]).double()
    start = probes((), 4, 3000, generator)
    exact, halved = (
        lanczos(lambda v: v * eigenvalues, start, 120, storage=storage, keep_basis=True)
        for storage in (torch.float64, torch.float32)
    )
    assert halved.basis.dtype == torch.float32
    assert (exact.diagonal - halved.diagonal).abs().max() < 750 * 1e-10
    assert (exact.off_diagonal - halved.off_diagonal).abs().max() < 750 * 1e-10
    doubled = halved.basis.double()
    assert (doubled @ doubled.mT - torch.eye(120)).abs().max() < 1e-4


def test_leading_axes_and_probes_equal_a_loop(generator, with_eigenvalues):
    matrices = with_eigenvalues(torch.randn(2, 3, 30, generator=generator))
    start = probes((2, 3), 4, 30, generator)
    found = lanczos(lambda v: v @ matrices, start, 12)
    assert found.diagonal.shape == (2, 3, 4, 12)
    for index in torch.cartesian_prod(torch.arange(2), torch.arange(3), torch.arange(4)).tolist():
        i, j, p = index
        alone = lanczos(lambda v, m=matrices[i, j]: v @ m, start[i, j, p : p + 1], 12)
        torch.testing.assert_close(found.diagonal[i, j, p], alone.diagonal[0], rtol=0, atol=1e-11)
        torch.testing.assert_close(found.off_diagonal[i, j, p], alone.off_diagonal[0], rtol=0, atol=1e-11)
        torch.testing.assert_close(found.last_off_diagonal[i, j, p], alone.last_off_diagonal[0])


def test_an_extended_run_equals_one_long_run(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.randn(80, generator=generator))
    start = probes((), 3, 80, generator)
    calls = []

    def product(vectors):
        calls.append(len(vectors))
        return vectors @ matrix

    whole = lanczos(product, start, 30)
    calls.clear()
    grown = lanczos(product, start, 10, keep_basis=True)
    for more in (1, 4, 15):
        grown = extend(grown, product, more)
    assert len(calls) == 30
    assert grown.steps == 30
    for name in ("diagonal", "off_diagonal", "last_off_diagonal", "lengths"):
        torch.testing.assert_close(getattr(grown, name), getattr(whole, name), rtol=0, atol=1e-11)
    assert grown.basis.shape == (3, 30, 80)


def test_probes_in_an_invariant_subspace_finish_and_the_others_go_on(with_eigenvalues):
    eigenvalues = torch.tensor([3.0, -1.0, 0.5, 2.0, 7.0, 4.0]).double()
    start = torch.tensor([[1, 1, 0, 0, 0, 0], [0, 0, 1, 0, 0, 0], [1, 1, 1, 1, 1, 1]]).double()
    found = lanczos(lambda v: v * eigenvalues, start, 50, keep_basis=True)
    assert found.lengths.tolist() == [2, 1, 6]
    assert found.finished.all()
    assert found.steps == 6
    rule = gauss(found)
    torch.testing.assert_close(rule.nodes[0, :2], torch.tensor([-1.0, 3.0]).double())
    torch.testing.assert_close(rule.weights[0], torch.tensor([0.5, 0.5, 0, 0, 0, 0]).double())
    assert extend(found, lambda v: v * eigenvalues, 5).steps == 6


def test_the_zero_operator_finishes_at_once(generator):
    found = lanczos(torch.zeros_like, probes((), 2, 9, generator), 5)
    assert found.lengths.tolist() == [1, 1]
    assert gauss(found).nodes.tolist() == [[0.0], [0.0]]


def test_an_operator_that_returns_its_argument_is_not_spoilt(generator):
    start = probes((), 2, 9, generator)
    kept = start.clone()
    found = lanczos(lambda v: v, start, 5)
    assert found.lengths.tolist() == [1, 1]
    torch.testing.assert_close(found.diagonal, torch.ones(2, 1).double())
    assert torch.equal(start, kept)


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_the_unit_of_the_operator_changes_nothing_else(factor, generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.cat([torch.zeros(30), torch.linspace(1, 3, 5)]))
    start = probes((), 2, 35, generator)
    found = lanczos(lambda v: v @ (factor * matrix), start, 20)
    plain = lanczos(lambda v: v @ matrix, start, 20)
    assert torch.equal(found.lengths, plain.lengths)
    assert found.lengths.tolist() == [6, 6]  # five eigenvalues and the zero
    torch.testing.assert_close(gauss(found).nodes, factor * gauss(plain).nodes, rtol=0, atol=1e-11 * factor)


def test_float32_products_come_close_and_stop_at_their_own_rounding(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.cat([torch.zeros(80), torch.linspace(1, 3, 5)]))
    single = matrix.float()
    seen = set()

    def product(vectors):
        seen.add(vectors.dtype)
        return vectors @ single

    found = lanczos(product, probes((), 3, 85, generator, dtype=torch.float32), 40)
    assert seen == {torch.float32}
    assert found.diagonal.dtype == torch.float64
    assert found.lengths.max() <= 8
    largest = gauss(found).nodes[:, -1]
    torch.testing.assert_close(largest, torch.full((3,), 3.0).double(), rtol=1e-5, atol=0)


def test_refusals_say_what_to_do(generator):
    start = probes((), 1, 5, generator)
    with pytest.raises(Refused, match="steps is 0"):
        lanczos(lambda v: v, start, 0)
    with pytest.raises(Refused, match="starting vector is zero"):
        lanczos(lambda v: v, torch.zeros(1, 5).double(), 3)
    with pytest.raises(Refused, match="needs float32 or float64"):
        lanczos(lambda v: v, start.half(), 3)
    with pytest.raises(Refused, match=r"shape \(5,\)"):
        lanczos(lambda v: v, start[0], 3)
    with pytest.raises(Refused, match="keep_basis=True to go on"):
        extend(lanczos(lambda v: v, start, 3), lambda v: v, 2)
    with pytest.raises(Refused, match="ask for it with keep_basis=True"):
        _ = lanczos(lambda v: v, start, 3).basis
    with pytest.raises(Refused, match="not finite"):
        lanczos(lambda v: v * torch.nan, start, 3)
