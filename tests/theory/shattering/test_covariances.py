"""Products of theorems 1–3 and corollary 1, their asymptotes and corrections."""

from __future__ import annotations

import math

import pytest
import torch

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator, torch_generator
from skiplab.theory.shattering import covariances as theory
from skiplab.theory.shattering import independent_gates as gates
from skiplab.theory.shattering.printed import printed_residual_batch_norm

DEPTHS = (1, 2, 7, 100)


@pytest.mark.parametrize("depth", DEPTHS)
def test_closed_forms(depth: int) -> None:
    assert (theory.plain(depth).variance, theory.plain(depth).covariance) == (1.0, 0.5**depth)
    assert theory.residual(depth).variance == 2.0**depth
    assert theory.residual(depth).correlation == pytest.approx(0.75**depth)
    rescaled = theory.residual(depth, alpha=1 / math.sqrt(2))
    assert rescaled.variance == pytest.approx(1.0)
    assert rescaled.correlation == pytest.approx(0.75**depth)
    assert theory.highway(depth).variance == pytest.approx(1.0)
    assert theory.highway(depth).correlation == pytest.approx((1 - 1 / (2 * depth)) ** depth)


@pytest.mark.parametrize("beta", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("depth", DEPTHS)
def test_theorem_3_telescopes_and_has_a_ratio_of_gammas(depth: int, beta: float) -> None:
    found = theory.residual_batch_norm(depth, beta)
    assert found.variance == pytest.approx(beta**2 * depth + 1)
    a = 1 / beta**2
    log = math.lgamma(depth + a + 0.5) + math.lgamma(a) - math.lgamma(a + 0.5) - math.lgamma(depth + a)
    assert found.covariance == pytest.approx(math.exp(log))
    assert printed_residual_batch_norm(depth + 1, beta).variance == pytest.approx(found.variance)


def test_the_numbers_of_the_errata() -> None:
    """L = 100 in the paper's counting crosses 99 modules."""
    assert theory.residual_batch_norm(99, 1.0).covariance == pytest.approx(11.27, abs=0.005)
    assert theory.residual_batch_norm(99, 0.1).correlation == pytest.approx(0.709, abs=5e-4)
    centred = theory.residual_batch_norm(99, 1.0, centred=True)
    assert centred.variance == pytest.approx(408, abs=0.5)
    assert centred.correlation == pytest.approx(0.058, abs=5e-4)
    assert theory.residual_batch_norm(99, 0.1, centred=True).correlation == pytest.approx(0.686, abs=5e-4)
    for batch, expected in ((64, 507), (256, 430)):
        found = theory.residual_batch_norm(99, 1.0, centred=True, batch=batch).variance
        assert found == pytest.approx(expected, abs=0.5)
    assert theory.highway(10**5, cosine=0.0).correlation == pytest.approx(0.634, abs=5e-4)


def test_highway_limits_about_zero_and_about_the_mean() -> None:
    found = theory.highway(10**6)
    assert found.correlation == pytest.approx(math.exp(-0.5), rel=1e-5)
    square = found.mean**2
    expected = (math.exp(-0.5) - math.exp(-1)) / (1 - math.exp(-1))
    assert (found.covariance - square) / (found.variance - square) == pytest.approx(expected, rel=1e-5)


def test_plain_batch_norm_grows_by_pi_over_pi_minus_one() -> None:
    grown = theory.plain_batch_norm(11).variance / theory.plain_batch_norm(10).variance
    assert grown == pytest.approx(math.pi / (math.pi - 1))
    assert theory.plain_batch_norm(10, centred=False) == theory.plain(10)


def test_centred_share_and_gates_are_gaussian_integrals() -> None:
    """2 Var ρ(z), the share of units active together, and the cosine after a rectifier, by drawing Gaussians."""
    z = numpy_generator(0, "gaussians").normal(size=(2, 1_000_000))
    assert 2 * z[0].clip(0).var() == pytest.approx(theory.CENTRED, abs=0.005)
    for cosine in (-0.6, 0.0, 0.9):
        one, two = z[0], cosine * z[0] + math.sqrt(1 - cosine**2) * z[1]
        assert ((one > 0) & (two > 0)).mean() == pytest.approx(theory.coactivation(cosine), abs=0.002)
        product = 2 * (one.clip(0) * two.clip(0)).mean()
        assert product == pytest.approx(theory.rectified_cosine(cosine), abs=0.006)


def test_gates_that_agree_keep_gradients_alike() -> None:
    for found in (
        theory.plain(10, cosine=1.0),
        theory.residual(10, cosine=1.0),
        theory.highway(10, cosine=1.0),
    ):
        assert found.correlation == pytest.approx(1.0)
    assert theory.plain(1, cosine=0.0) == theory.plain(1)
    assert theory.plain(10, cosine=0.0).correlation == pytest.approx(0.0337, abs=1e-4)
    assert theory.residual(10, cosine=0.0).correlation == pytest.approx(0.1402, abs=1e-4)
    # α scales every layer alike, so it cannot change a correlation.
    scaled = theory.residual(10, alpha=0.3, cosine=0.0).correlation
    assert scaled == pytest.approx(theory.residual(10, cosine=0.0).correlation)


def test_a_batch_matters_less_the_larger_it_is() -> None:
    wide = theory.residual_batch_norm(99, centred=True)
    apart = [
        theory.residual_batch_norm(99, centred=True, batch=batch).variance / wide.variance - 1
        for batch in (100, 1000, 10_000)
    ]
    assert apart == sorted(apart, reverse=True)
    assert apart[2] == pytest.approx(apart[1] / 10, rel=0.05)


def test_the_inverse_variance_of_a_small_batch() -> None:
    batch = 8
    x = numpy_generator(0, "batches").normal(size=(400_000, batch))
    expected = theory.residual_batch_norm(1, batch=batch).variance - 1
    assert (1 / x.var(axis=1)).mean() == pytest.approx(expected, rel=0.01)


def gradients_of_a_normalised_net(
    skip: float, beta: float, depth: int, width: int, batch: int, generator: torch.Generator
) -> tuple[float, float]:
    """E[∇_i²] and E[∇_i ∇_j] of one real net x ↦ skip x + β W ρ(BN(x)), BN's statistics held constant."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    x, steps = draw(batch, width), []
    for _ in range(depth):
        deviation = x.std(0, correction=0)
        z = (x - x.mean(0)) / deviation
        W = draw(width, width) * math.sqrt(2 / width)
        steps.append((W, (z > 0) / deviation))
        x = skip * x + beta * z.relu() @ W.T
    gradient = torch.ones_like(x)
    for W, slope in reversed(steps):
        gradient = skip * gradient + beta * (gradient @ W) * slope
    square, total = gradient.square().sum(), gradient.sum(0).square().sum()
    return float(square) / (batch * width), float(total - square) / (batch * (batch - 1) * width)


@pytest.mark.parametrize(
    ("skip", "beta", "depth", "batch"), [(0.0, 1.0, 4, 8), (1.0, 1.0, 8, 8), (1.0, 0.5, 8, 8)]
)
def test_small_batches_through_many_layers(skip: float, beta: float, depth: int, batch: int) -> None:
    """All three corrections for the batch at once; without that of 1 − 1/π the first case would be a third larger."""
    generator = torch_generator(0, "small batches", depth, batch, int(skip))
    nets = [gradients_of_a_normalised_net(skip, beta, depth, 400, batch, generator) for _ in range(40)]
    exact = (
        theory.residual_batch_norm(depth, beta, centred=True, batch=batch)
        if skip
        else theory.plain_batch_norm(depth, batch=batch)
    )
    for found, expected in zip(
        torch.tensor(nets, dtype=torch.float64).T, (exact.variance, exact.covariance), strict=True
    ):
        error = float(found.std()) / math.sqrt(len(found))
        assert abs(float(found.mean()) - expected) < 4 * error
    variance = torch.tensor(nets, dtype=torch.float64)[:, 0]
    assert float(variance.std()) / math.sqrt(len(nets)) < 0.04 * exact.variance


def test_what_a_branch_adds_over_a_small_batch() -> None:
    """The spread of ρ over a normalised batch of 5, which decides what the next normalisation divides by."""
    z = numpy_generator(0, "spheres").normal(size=(400_000, 5))
    z = (z - z.mean(1, keepdims=True)) / z.std(1, keepdims=True)
    found = 2 * z.clip(0).var(axis=1, ddof=1)
    # Of the second of two modules variance is B/((B − 3)κ), beside the first one's B/(B − 3).
    one, two = (theory.plain_batch_norm(depth, batch=5).variance for depth in (1, 2))
    error = found.std() / math.sqrt(len(found))
    assert abs(found.mean() - one**2 / two) < 4 * error
    assert error < 0.002


def test_correlations_at_any_depth() -> None:
    assert theory.residual(1100).variance == math.inf
    assert theory.residual(1100).correlation == pytest.approx(0.75**1100, rel=1e-9)
    assert theory.residual(10**6).correlation == 0.0
    assert theory.plain_batch_norm(1900).correlation == 0.0
    assert theory.plain_batch_norm(1000).correlation == pytest.approx(0.5**1000)
    assert theory.plain_batch_norm(2000).variance == math.inf
    assert theory.spread(10**6, 10) == math.inf
    # α cancels from every correlation, however far it carries the moments.
    for alpha in (1e-200, 1e200, -0.3):
        found = theory.residual(50, alpha)
        assert found.correlation == pytest.approx(0.75**50)
    assert theory.residual(2000, cosine=0.0).correlation == pytest.approx(
        theory.residual(2000, 2**-0.5, cosine=0.0).covariance, rel=1e-9
    )


def test_the_mean_has_alphas_sign() -> None:
    assert [theory.residual(depth, alpha=-1.0).mean for depth in (2, 3)] == [1.0, -1.0]
    assert theory.residual(3, alpha=-0.5).mean == pytest.approx((-0.5) ** 3)
    assert theory.highway(10, 0.8).mean == pytest.approx(0.8**10)
    assert theory.plain(3).mean == 0.0


SCALES = {
    "plain": (gates.plain_scales, theory.plain),
    "residual": (gates.residual_scales, theory.residual),
    "batch norm": (gates.batch_norm_scales, theory.residual_batch_norm),
    "highway": (gates.highway_scales, theory.highway),
}


@pytest.mark.parametrize("width", [4, 64])
@pytest.mark.parametrize("name", SCALES)
def test_independent_gates_give_the_theorems_at_any_width(name: str, width: int) -> None:
    scales, exact = SCALES[name]
    found = gates.gated_gradients(scales(3), width, 3, 4000, generator=torch_generator(0, name, width))
    variance, covariance = gates.second_moments(found)
    for sample, expected in ((variance, exact(3).variance), (covariance, exact(3).covariance)):
        error = float(sample.std()) / math.sqrt(len(sample))
        assert abs(float(sample.mean()) - expected) < 4 * error
        assert error < 0.15 * expected


def drawing_every_weight(
    scales: gates.Scales, width: int, samples: int, nets: int, *, generator: torch.Generator
) -> torch.Tensor:
    """``gated_gradients`` with every weight drawn, one matrix per module."""
    gradients = torch.ones((nets, samples, width), dtype=torch.float64)
    for carry, branch in reversed(scales):
        W = torch.randn((nets, width, width), generator=generator, dtype=torch.float64)
        opened = torch.randint(0, 2, gradients.shape, generator=generator, dtype=torch.int8)
        gradients = carry * gradients + branch * opened * (gradients @ W * math.sqrt(2 / width))
    return gradients


@pytest.mark.parametrize("name", ["plain", "residual"])
def test_drawing_by_gram_matrices_has_the_law_of_drawing_every_weight(name: str) -> None:
    """Means and variances over nets of mean squares and mean products, two layers deep."""
    found = {}
    for draw in (gates.gated_gradients, drawing_every_weight):
        generator = torch_generator(1, name, draw.__name__)
        parts = torch.stack(gates.second_moments(draw(SCALES[name][0](2), 6, 3, 20_000, generator=generator)))
        found[draw.__name__] = torch.cat([parts, parts.square()])
    one, two = found.values()
    errors = ((one.var(1) + two.var(1)) / one.shape[1]).sqrt()
    assert bool(((one.mean(1) - two.mean(1)).abs() < 4 * errors).all())


@pytest.mark.parametrize(("skip", "branch"), [(0.0, 1.0), (1.0, 1.0), (0.8, 0.6)])
def test_the_spread_of_a_nets_mean_square(skip: float, branch: float) -> None:
    found = gates.gated_gradients([(skip, branch)] * 5, 40, 1, 20_000, generator=torch_generator(2, "spread"))
    v = found.square().mean((1, 2))
    ratio = float(v.square().mean() / v.mean() ** 2)
    assert ratio - 1 == pytest.approx(theory.spread(5, 40, skip, branch) - 1, rel=0.1)


def test_refusals() -> None:
    with pytest.raises(Refused, match="depth is 0"):
        theory.plain(0)
    with pytest.raises(Refused, match=r"gamma is 1\.5"):
        theory.highway(3, 1.5)
    with pytest.raises(Refused, match="cosine is 2"):
        theory.coactivation(2.0)
    with pytest.raises(Refused, match="batch is 3"):
        theory.plain_batch_norm(3, batch=3)
    with pytest.raises(Refused, match=r"depth is 2\.5"):
        theory.plain(2.5)  # type: ignore[arg-type]
    with pytest.raises(Refused, match=r"alpha is 0\.0"):
        theory.residual(10, alpha=0.0)
    with pytest.raises(Refused, match=r"beta is 1e\+200"):
        theory.residual_batch_norm(10, beta=1e200)
    with pytest.raises(Refused, match="beta is nan"):
        theory.residual(10, beta=math.nan)
    with pytest.raises(Refused, match="width is 0"):
        theory.spread(10, 0)
    with pytest.raises(Refused, match="one must be other than 0"):
        theory.spread(10, 5, 0.0, 0.0)
    with pytest.raises(Refused, match="samples is 0"):
        gates.gated_gradients([(0.0, 1.0)], 4, 0, 2, generator=torch_generator(0))
