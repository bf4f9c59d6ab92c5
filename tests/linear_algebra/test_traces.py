"""Traces by XTrace: exact where they can be, unbiased, with error bars that hold, and better than Hutchinson's."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from skiplab.checks import Refused
from skiplab.linear_algebra import xtrace
from skiplab.randomness import torch_generator

SIZE = 60


def matrix_of(values: Tensor, seed: int = 0) -> Tensor:
    """A symmetric matrix with these eigenvalues in a random basis."""
    drawn = torch.randn(
        len(values), len(values), generator=torch_generator(seed, "basis"), dtype=torch.float64
    )
    basis = torch.linalg.qr(drawn).Q
    return basis @ torch.diag(values) @ basis.mT


def falling() -> Tensor:
    """Eigenvalues of both signs that fall fast, as those of a trained network's Hessian do."""
    return torch.logspace(3, -3, SIZE, dtype=torch.float64) * torch.tensor([1.0, -0.5]).repeat(SIZE // 2)


def estimates(matrix: Tensor, products: int, runs: int) -> tuple[Tensor, Tensor]:
    """Values and standard errors of independent runs, all at once."""
    found = xtrace(lambda v: v @ matrix, len(matrix), products, torch_generator(0, "runs"), lead=(runs,))
    return found.value, found.stderr


def by_definition(matrix: Tensor, omega: Tensor) -> float:
    """XTrace as the module says it, with a basis made anew for every vector left out."""
    count, size = omega.shape[1], len(matrix)
    total = 0.0
    for left_out in range(count):
        others = [number for number in range(count) if number != left_out]
        basis = torch.linalg.qr(matrix @ omega[:, others]).Q
        outside = omega[:, left_out] - basis @ (basis.mT @ omega[:, left_out])
        known = torch.trace(basis.mT @ matrix @ basis)
        rest = outside @ matrix @ outside * (size - count + 1) / outside.square().sum()
        total += float(known + rest) / count
    return total


def test_the_fast_form_is_the_definition() -> None:
    matrix = matrix_of(falling())
    drawn: list[Tensor] = []

    def product(vectors: Tensor) -> Tensor:
        drawn.append(vectors)
        return vectors @ matrix

    found = xtrace(product, SIZE, 16, torch_generator(3))
    omega = drawn[0].mT * SIZE**0.5
    assert omega.shape == (SIZE, 8)
    assert found.products == 16
    assert float(found.value) == pytest.approx(by_definition(matrix, omega), rel=1e-9)


def test_a_few_eigenvalues_are_found_exactly() -> None:
    values = torch.zeros(SIZE, dtype=torch.float64)
    values[:3] = torch.tensor([5.0, -2.0, 1.5])
    value, stderr = estimates(matrix_of(values), 10, 20)
    torch.testing.assert_close(value, torch.full_like(value, 4.5), rtol=1e-9, atol=0)
    assert float(stderr.max()) < 1e-9


def test_estimates_are_unbiased_and_their_errors_hold() -> None:
    flat = torch.linspace(-1, 3, SIZE, dtype=torch.float64)  # the hardest: nothing for the basis to take out
    for values in (flat, falling()):
        value, stderr = estimates(matrix_of(values), 20, 2000)
        truth = float(values.sum())
        off = float(value.mean()) - truth
        assert abs(off) < 4 * float(value.std()) / len(value) ** 0.5
        within = ((value - truth).abs() < 2.26 * stderr).double().mean()  # Student's 95 % of ten
        assert 0.88 < float(within) < 0.99


def test_it_needs_fewer_products_than_hutchinson() -> None:
    matrix = matrix_of(falling())
    value, _ = estimates(matrix, 30, 500)
    draws = torch.randint(0, 2, (500, 30, SIZE), generator=torch_generator(1)).double() * 2 - 1
    hutchinson = ((draws @ matrix) * draws).sum(-1).mean(-1)
    truth = matrix.trace()
    ours, theirs = ((each - truth).square().mean().sqrt() for each in (value, hutchinson))
    assert float(ours) < float(theirs) / 10


def test_many_operators_at_once_are_each_alone() -> None:
    matrices = torch.stack([matrix_of(falling(), seed) for seed in range(3)])
    together = xtrace(lambda v: v @ matrices, SIZE, 12, torch_generator(0), lead=(3,))
    drawn = torch.randn(3, 6, SIZE, generator=torch_generator(0), dtype=torch.float64)
    for number, matrix in enumerate(matrices):
        omega = drawn[number] / drawn[number].norm(dim=-1, keepdim=True) * SIZE**0.5
        assert float(together.value[number]) == pytest.approx(by_definition(matrix, omega.mT), rel=1e-9)


def test_as_many_products_as_rows_are_exact() -> None:
    matrix = matrix_of(falling())
    found = xtrace(lambda v: v @ matrix, SIZE, SIZE + 5, torch_generator(0))
    assert float(found.value) == pytest.approx(float(matrix.trace()), rel=1e-12)
    assert float(found.stderr) == 0
    assert found.products == SIZE


def test_too_few_products_are_refused() -> None:
    with pytest.raises(Refused, match="products is 3, but an error bar needs at least 4"):
        xtrace(lambda v: v, SIZE, 3, torch_generator(0))
