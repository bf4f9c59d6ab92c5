"""Extreme eigenvalues against dense ones: clusters, multiplicities, leading axes, honest failure."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import extreme_eigenvalues, extremes
from skiplab.randomness import torch_generator


def clustered():
    """Five leading eigenvalues of which three are close together, next to a dense bulk."""
    return torch.cat([torch.linspace(-1, 1, 395), torch.tensor([1.05, 1.06, 1.07, 5.0, 6.0])]).double()


def test_the_fifth_eigenvalue_is_right_and_a_fixed_ten_steps_would_not_be(generator, with_eigenvalues):
    matrix = with_eigenvalues(clustered())
    found = extreme_eigenvalues(lambda v: v @ matrix, 400, 5, generator)
    assert found.converged
    assert found.steps > 10
    expected = torch.tensor([6.0, 5.0, 1.07, 1.06, 1.05]).double()
    torch.testing.assert_close(found.values, expected, rtol=0, atol=1e-6)
    short = extreme_eigenvalues(lambda v: v @ matrix, 400, 5, torch_generator(1), block=1, max_steps=10)
    assert not short.converged
    assert abs(short.values[4] - 1.05) > 0.05
    assert short.residuals[4] > 0.01


def test_a_start_that_leans_towards_an_eigenvector_takes_fewer_steps_to_the_same_eigenvalue(
    generator, with_eigenvalues
):
    matrix = with_eigenvalues(clustered())
    top = torch.linalg.eigh(matrix).eigenvectors[:, -1]
    leaning = top + torch.randn(400, generator=generator, dtype=torch.float64) / 200
    found, random = (
        extreme_eigenvalues(lambda v: v @ matrix, 400, 1, torch_generator(1), block=1, start=start)
        for start in (leaning[None], None)
    )
    assert found.values.item() == pytest.approx(6, abs=1e-9)
    assert found.converged
    assert random.converged
    assert found.steps < random.steps


def test_a_start_of_single_precision_projects_in_double(with_eigenvalues):
    matrix = with_eigenvalues(clustered())
    start = torch.randn(2, 400, generator=torch_generator(3))
    found = extreme_eigenvalues(lambda v: v @ matrix, 400, 2, torch_generator(1), start=start)
    torch.testing.assert_close(found.values, torch.tensor([6.0, 5.0]).double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("which", ["largest", "smallest", "magnitude", "both"])
def test_every_end_is_found_in_its_order(which, generator, with_eigenvalues):
    eigenvalues = torch.cat([torch.linspace(-1, 1, 90), torch.tensor([9.0, -8.0, 4.0, -3.0])])
    matrix = with_eigenvalues(eigenvalues)
    found = extreme_eigenvalues(lambda v: v @ matrix, 94, 2, generator, which=which)
    expected = {
        "largest": [9.0, 4.0],
        "smallest": [-8.0, -3.0],
        "magnitude": [9.0, -8.0],
        "both": [9.0, 4.0, -8.0, -3.0],
    }[which]
    torch.testing.assert_close(found.values, torch.tensor(expected).double(), rtol=0, atol=1e-5)
    assert found.converged


def test_a_block_finds_as_many_copies_of_an_eigenvalue_as_it_is_wide(with_eigenvalues):
    bulk = torch.linspace(-1, 1, 100)
    double = with_eigenvalues(torch.cat([bulk, torch.tensor([5.0, 5.0, 3.0, 2.0])]))
    triple = with_eigenvalues(torch.cat([bulk, torch.tensor([5.0, 5.0, 5.0, 3.0, 2.0])]))
    for matrix, block, expected in (
        (double, 2, [5.0, 5.0]),
        (double, 1, [5.0, 3.0]),  # what a single vector would answer, and call converged
        (triple, 3, [5.0, 5.0, 5.0, 3.0]),
    ):
        size, count = len(matrix), len(expected)
        found = extreme_eigenvalues(
            lambda v, m=matrix: v @ m, size, count, torch_generator(4), block=block, tolerance=1e-5
        )
        assert found.converged
        torch.testing.assert_close(found.values, torch.tensor(expected).double(), rtol=0, atol=1e-6)
    assert extreme_eigenvalues(lambda v: v @ double, 104, 2, torch_generator(4)).values[1] > 4.999


def test_residuals_and_vectors_are_what_they_say(generator, with_eigenvalues):
    matrix = with_eigenvalues(clustered())
    found = extreme_eigenvalues(
        lambda v: v @ matrix, 400, 4, generator, which="both", vectors=True, tolerance=1e-4
    )
    assert found.vectors.shape == (8, 400)
    assert (found.vectors @ found.vectors.mT - torch.eye(8)).abs().max() < 1e-12
    residuals = (found.vectors @ matrix - found.values[:, None] * found.vectors).norm(dim=-1)
    torch.testing.assert_close(residuals, found.residuals, rtol=1e-3, atol=1e-12)
    distance = (found.values[:, None] - clustered()).abs().amin(-1)
    assert (distance <= found.residuals + 1e-12).all()


def test_leading_axes_equal_a_loop(generator, with_eigenvalues):
    matrices = with_eigenvalues(torch.randn(2, 3, 40, generator=generator))
    found = extreme_eigenvalues(lambda v: v @ matrices, 40, 3, generator, which="both", lead=(2, 3))
    exact = torch.linalg.eigvalsh(matrices)
    assert found.values.shape == (2, 3, 6)
    assert found.converged.shape == (2, 3)
    torch.testing.assert_close(found.values[..., :3], exact[..., -3:].flip(-1), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.values[..., 3:], exact[..., :3], rtol=0, atol=1e-5)


@pytest.mark.parametrize("block", [1, 2, 3, 5, 7, 9])
def test_small_operators_are_exhausted_exactly(block, generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.tensor([[2.0, 2, 2, 0, 0, 0, -1], [1.0, 2, 3, 4, 5, 6, 7]]))
    found = extreme_eigenvalues(
        lambda v: v @ matrix, 7, 7, generator, block=block, lead=(2,), which="smallest"
    )
    exact = torch.linalg.eigvalsh(matrix)
    torch.testing.assert_close(found.values, exact, rtol=0, atol=1e-12)


def test_the_zero_operator_has_zero_eigenvalues(generator):
    found = extreme_eigenvalues(torch.zeros_like, 20, 3, generator)
    assert found.values.tolist() == [0, 0, 0]
    assert found.converged


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_unit_of_the_loss_does_not_matter(factor, with_eigenvalues):
    matrix = with_eigenvalues(clustered())
    plain, scaled = (
        extreme_eigenvalues(lambda v, f=f: v @ (f * matrix), 400, 5, torch_generator(3))
        for f in (1.0, factor)
    )
    assert scaled.steps == plain.steps
    torch.testing.assert_close(scaled.values, factor * plain.values, rtol=1e-9, atol=0)


def test_float32_products_suffice(generator, with_eigenvalues):
    matrix = with_eigenvalues(clustered()).float()
    found = extreme_eigenvalues(lambda v: v @ matrix, 400, 3, generator, dtype=torch.float32)
    assert found.converged
    torch.testing.assert_close(found.values, torch.tensor([6.0, 5.0, 1.07]).double(), rtol=0, atol=1e-5)
    assert (found.residuals >= 6 * 1e-7).all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("block", [1, 2])
def test_no_eigenvalue_is_found_twice_long_after_the_first_converged(dtype, block, with_eigenvalues):
    # A recurrence without a basis finds 100 again within 60 steps.
    eigenvalues = torch.cat([torch.linspace(-1, 1, 396), torch.tensor([2.0, 4.0, 20.0, 100.0])])
    matrix = with_eigenvalues(eigenvalues).to(dtype)
    eps = torch.finfo(dtype).eps
    for vectors in (False, True):
        found = extreme_eigenvalues(
            lambda v: v @ matrix,
            400,
            5,
            torch_generator(2),
            block=block,
            dtype=dtype,
            tolerance=1e-12,
            vectors=vectors,
            max_steps=90,
        )
        expected = torch.tensor([100.0, 20.0, 4.0, 2.0]).double()
        torch.testing.assert_close(found.values[:4], expected, rtol=0, atol=4000 * eps)
        assert found.values[4] < 1.01
    assert found.vectors is not None
    overlaps = found.vectors @ found.vectors.mT - torch.eye(5, dtype=torch.float64)
    assert overlaps.abs().max() < 40 * eps


def test_before_a_pair_has_converged_the_recurrence_alone_is_as_good(with_eigenvalues, monkeypatch):
    matrix = with_eigenvalues(clustered())
    calls = []
    whole = extremes._orthogonalise

    def counted(vectors, pieces):
        calls.append(len(pieces))
        return whole(vectors, pieces)

    monkeypatch.setattr(extremes, "_orthogonalise", counted)

    def found():
        return extreme_eigenvalues(
            lambda v: v @ matrix, 400, 1, torch_generator(3), which="magnitude", tolerance=1e-3, block=1
        )

    alone = found()
    assert len(calls) <= 1  # the step that settles it
    monkeypatch.setattr(extremes, "LEANING", float("inf"))
    always = found()
    assert len(calls) > alone.steps == always.steps
    torch.testing.assert_close(alone.values, always.values, rtol=1e-12, atol=0)
    torch.testing.assert_close(alone.residuals, always.residuals, rtol=1e-6, atol=0)


def test_an_operator_may_return_what_it_was_given_or_keeps(generator):
    kept = torch.randn(1, 30, dtype=torch.float64, generator=generator)
    before = kept.clone()
    assert extreme_eigenvalues(lambda v: v, 30, 1, generator).values.item() == pytest.approx(1)
    extreme_eigenvalues(lambda v: kept, 30, 1, generator, block=1, max_steps=1)
    assert torch.equal(kept, before)


def test_long_sums_of_float32_are_as_precise_as_their_numbers(generator):
    vectors = torch.randn(1, 2, 3_000_001, generator=generator)
    exact = vectors.double() @ vectors.double().mT
    torch.testing.assert_close(extremes._coordinates(vectors, vectors), exact, rtol=1e-12, atol=1e-6)
    torch.testing.assert_close(extremes._norms(vectors)[0] ** 2, exact[0].diagonal(), rtol=1e-12, atol=0)


def test_refusals_say_what_to_do(generator):
    with pytest.raises(Refused, match="Did you mean largest"):
        extreme_eigenvalues(lambda v: v, 5, 1, generator, which="larges")
    with pytest.raises(Refused, match="has 5 eigenvalues"):
        extreme_eigenvalues(lambda v: v, 5, 6, generator)
    with pytest.raises(Refused, match="raise max_steps or block"):
        extreme_eigenvalues(lambda v: v, 50, 9, generator, max_steps=2)
    with pytest.raises(Refused, match="tolerance is 0"):
        extreme_eigenvalues(lambda v: v, 5, 1, generator, tolerance=0)
