"""Probes: unit length, unbiased, reproducible, in any precision."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import probes, require_symmetric
from skiplab.linear_algebra.operators import apply, stderr
from skiplab.randomness import torch_generator


@pytest.mark.parametrize("kind", ["rademacher", "normal"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probes_are_unit_vectors_of_the_asked_shape(kind, dtype, generator):
    drawn = probes((2, 3), 4, 500, generator, kind=kind, dtype=dtype)
    assert drawn.shape == (2, 3, 4, 500)
    assert drawn.dtype == dtype
    torch.testing.assert_close(drawn.double().norm(dim=-1), torch.ones(2, 3, 4).double(), rtol=1e-6, atol=0)


@pytest.mark.parametrize("kind", ["rademacher", "normal"])
def test_probes_estimate_the_trace_without_bias(kind, generator, with_eigenvalues):
    matrix = with_eigenvalues(torch.linspace(-1, 3, 20))
    drawn = probes((), 20_000, 20, generator, kind=kind)
    samples = ((drawn @ matrix) * drawn).sum(-1)
    assert abs(samples.mean() - 1.0) < 4 * stderr(samples)


def test_equal_streams_draw_equal_probes():
    first, second = (probes((2,), 3, 7, torch_generator(5)) for _ in range(2))
    assert torch.equal(first, second)
    assert not torch.equal(first, probes((2,), 3, 7, torch_generator(6)))


def test_an_unknown_kind_gets_a_suggestion(generator):
    with pytest.raises(Refused, match="Did you mean rademacher"):
        probes((), 1, 5, generator, kind="rademacker")


def test_a_product_of_another_shape_is_refused():
    with pytest.raises(Refused, match=r"made \(5,\) of \(2, 5\)"):
        apply(lambda v: v[0], torch.ones(2, 5), torch.float64)


def test_a_product_that_is_not_finite_is_refused():
    with pytest.raises(Refused, match="float32 is not finite"):
        apply(lambda v: v * torch.inf, torch.ones(2, 5), torch.float32)


def test_one_sample_has_no_standard_error():
    assert stderr(torch.ones(3, 1)).isnan().all()


def test_symmetry_is_required_of_what_matters(generator):
    skew = torch.randn(2, 30, 30, generator=generator, dtype=torch.float64)
    even = (skew + skew.mT) / 2
    noise = 1e-3 * skew
    require_symmetric(lambda v: v @ (even + noise), 30, lead=(2,))
    require_symmetric(lambda v: 0 * v, 30, lead=(2,))
    with pytest.raises(Refused, match="the operator is not symmetric: uᵀAv and vᵀAu differ"):
        require_symmetric(lambda v: v @ (even + skew), 30, lead=(2,))
    require_symmetric(lambda v: 1e-8 * v @ (even + skew), 30, lead=(2,), least=1e-3)
