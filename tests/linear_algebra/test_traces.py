"""Traces against dense ones: exact where they must be, unbiased, with standard errors that tell the truth."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import traces
from skiplab.randomness import torch_generator


def outliers():
    return torch.cat([torch.linspace(-0.1, 0.2, 290), torch.linspace(5, 50, 10)]).double()


@pytest.mark.parametrize("method", ["hutchinson", "hutch++"])
def test_estimates_scatter_about_the_trace_as_their_standard_errors_say(method, with_eigenvalues):
    matrix = with_eigenvalues(outliers())
    found = traces(lambda v: v @ matrix, 300, torch_generator(1), products=60, method=method, lead=(200,))
    for value, error, exact in (
        (found.trace, found.trace_stderr, matrix.trace()),
        (found.square, found.square_stderr, matrix.square().sum()),
    ):
        assert value.shape == (200,)
        assert abs(value.mean() - exact) < 4 * value.std() / 200**0.5
        within = ((value - exact).abs() <= 2 * error).double().mean()
        assert 0.85 < within <= 1


def test_hutch_plus_plus_gains_where_outliers_dominate_and_loses_where_nothing_does(with_eigenvalues):
    bulk = with_eigenvalues(torch.linspace(-1, 1, 300))
    spread = {}
    for name, matrix in (("outliers", with_eigenvalues(outliers())), ("bulk", bulk)):
        for method in ("hutchinson", "hutch++"):
            found = traces(
                lambda v, m=matrix: v @ m, 300, torch_generator(2), products=60, method=method, lead=(60,)
            )
            spread[name, method] = float(found.trace.std())
    assert spread["outliers", "hutch++"] < 0.1 * spread["outliers", "hutchinson"]
    assert spread["bulk", "hutch++"] > spread["bulk", "hutchinson"]


def test_hutch_plus_plus_is_exact_on_low_rank(generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.cat([torch.zeros(95), torch.tensor([1.0, -2, 3, 4, 5])]))
    found = traces(lambda v: v @ matrix, 100, generator, products=18)
    assert float(found.trace) == pytest.approx(11, abs=1e-10)
    assert float(found.square) == pytest.approx(55, abs=1e-10)
    assert found.trace_stderr < 1e-10


def test_rademacher_probes_are_exact_on_diagonal_operators(generator):
    diagonal = torch.arange(10.0).double()
    found = traces(lambda v: v * diagonal, 10, generator, products=2, method="hutchinson")
    assert float(found.trace) == pytest.approx(45, rel=1e-12)
    assert float(found.square) == pytest.approx(285, rel=1e-12)


def test_products_are_counted_and_float32_is_passed_on(generator, with_eigenvalues):
    matrix = with_eigenvalues(outliers()).float()
    seen = []

    def product(vectors):
        seen.append((vectors.dtype, vectors.shape[-2]))
        return vectors @ matrix

    found = traces(product, 300, generator, products=32, dtype=torch.float32)
    assert sum(count for _, count in seen) == found.products == 32
    assert {dtype for dtype, _ in seen} == {torch.float32}
    assert abs(found.trace - matrix.double().trace()) < 5 * found.trace_stderr


def test_refusals_say_what_to_do(generator):
    with pytest.raises(Refused, match="choose 'hutchinson'"):
        traces(lambda v: v, 50, generator, products=5)
    with pytest.raises(Refused, match=r"Did you mean hutch\+\+"):
        traces(lambda v: v, 50, generator, method="hutchpp")
