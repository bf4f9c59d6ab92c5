"""Dense matrices of operators and their eigenvalues."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import dense_bytes, dense_matrix, exact, matrix_eigenvalues


@pytest.mark.parametrize("columns", [None, 1, 7, 100])
def test_the_matrix_is_recovered_from_products(columns, generator, with_eigenvalues):
    matrices = with_eigenvalues(torch.randn(2, 3, 20, generator=generator))
    found = dense_matrix(lambda v: v @ matrices, 20, lead=(2, 3), columns=columns)
    torch.testing.assert_close(found, matrices, rtol=0, atol=1e-14)


def test_eigenvalues_are_those_given(generator, with_eigenvalues):
    eigenvalues = torch.randn(2, 40, generator=generator).double().sort(-1).values
    matrices = with_eigenvalues(eigenvalues)
    found = matrix_eigenvalues(dense_matrix(lambda v: v @ matrices, 40, lead=(2,), columns=9))
    torch.testing.assert_close(found, eigenvalues, rtol=0, atol=1e-12)
    alone = matrix_eigenvalues(dense_matrix(lambda v: v @ matrices[1], 40))
    torch.testing.assert_close(alone, eigenvalues[1], rtol=0, atol=1e-12)


def test_blocks_are_symmetrised_like_the_whole(generator):
    noisy = torch.randn(2100, 2100, generator=generator, dtype=torch.float64)
    noisy = noisy + noisy.mT + 1e-5 * torch.randn(2100, 2100, generator=generator, dtype=torch.float64)
    found = dense_matrix(lambda v: v @ noisy.mT, 2100)
    torch.testing.assert_close(found, (noisy + noisy.mT) / 2, rtol=0, atol=1e-14)


def test_float32_products_give_float64_matrices(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.randn(20, generator=generator))
    single = matrix.float()
    found = dense_matrix(lambda v: v @ single, 20, dtype=torch.float32)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found, matrix, rtol=0, atol=1e-6)


def test_an_operator_that_is_not_symmetric_is_refused(generator):
    skew = torch.randn(5, 5, generator=generator, dtype=torch.float64)
    with pytest.raises(Refused, match="not symmetric"):
        dense_matrix(lambda v: v @ skew, 5)
    with pytest.raises(Refused, match="use float64 products, or pass a symmetric one"):
        dense_matrix(lambda v: v @ skew.float(), 5, dtype=torch.float32)


def test_a_matrix_beyond_memory_is_refused_before_any_product(monkeypatch):
    monkeypatch.setattr(exact, "available_bytes", lambda device: 10**9)
    with pytest.raises(Refused, match=r"takes 9\.6 GB, and 1\.0 GB are free"):
        dense_matrix(lambda v: pytest.fail("multiplied"), 20_000)
    assert dense_bytes(20_000) == 3 * 8 * 20_000**2


def test_rows_of_zeros_are_eigenvalues_zero(generator, with_eigenvalues):
    inner = torch.tensor([-3.0, -0.5, 0.0, 2.0, 7.0], dtype=torch.float64)
    matrix = torch.zeros(2, 8, 8, dtype=torch.float64)
    places = torch.tensor([0, 2, 3, 5, 7])
    matrix[0, places[:, None], places] = with_eigenvalues(inner)
    matrix[1, 0, 1] = matrix[1, 1, 0] = 1.0  # a diagonal of zeros whose rows are not
    found = matrix_eigenvalues(matrix)
    expected = torch.cat([inner, torch.zeros(3, dtype=torch.float64)]).sort().values
    torch.testing.assert_close(found[0], expected, rtol=0, atol=1e-14)
    assert found[1].tolist() == [-1.0] + [0.0] * 6 + [1.0]
    assert (found[0] == 0).sum() >= 3
