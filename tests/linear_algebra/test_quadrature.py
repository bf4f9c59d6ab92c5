"""Gauss rules against moments, and guaranteed limits against measures whose masses are known."""

from __future__ import annotations

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import extend, gauss, lanczos, mass_limits, probes
from skiplab.linear_algebra.quadrature import SLACK
from skiplab.randomness import torch_generator


def measures(count, atoms, style, seed=0):
    """Random atoms and masses (count, atoms): spread, tied to thirds, or over eight orders of magnitude."""
    stream = torch_generator(seed, style, atoms)
    places = torch.randn(count, atoms, generator=stream, dtype=torch.float64)
    if style == "tied":
        places = (3 * places).round() / 3
    if style == "orders":
        places = places.sign() * 10 ** (2 * places)
    roots = torch.randn(count, atoms, generator=stream, dtype=torch.float64)
    return places, roots / roots.norm(dim=-1, keepdim=True)


def run(places, roots, steps, **options):
    """Lanczos on diagonal operators: the probe's spectral measure has mass root² at each place."""
    return lanczos(lambda v: v * places[:, None], roots[:, None], steps, **options)


def masses(places, roots, t):
    """True masses strictly left of t and up to t, (count, 1)."""
    left, up_to = (places < t), (places <= t)
    return tuple((inside * roots**2).sum(-1, keepdim=True) for inside in (left, up_to))


def points_of(places):
    """Points to try, each (count, 1): at an atom, beside one, zero, a third, the largest, and outside."""
    largest = places.max(1, keepdim=True).values
    return {
        "at an atom": places[:, :1],
        "just beside an atom": places[:, 1:2] + 1e-9,
        "zero": torch.zeros_like(largest),
        "a third": torch.full_like(largest, 1 / 3),
        "at the largest": largest,
        "right of all": largest + 1,
        "left of all": places.min(1, keepdim=True).values - 1,
    }


def test_gauss_integrates_polynomials_up_to_twice_its_order(generator):
    places, roots = measures(20, 30, "spread")
    rule = gauss(run(places, roots, 6))
    for degree in range(12):
        exact = (places**degree * roots**2).sum(-1)
        found = (rule.nodes**degree * rule.weights).sum(-1)[:, 0]
        torch.testing.assert_close(found, exact, rtol=1e-9, atol=1e-9)
    assert (
        (rule.nodes**12 * rule.weights).sum(-1)[:, 0] - (places**12 * roots**2).sum(-1)
    ).abs().min() > 1e-6


def test_some_eigenvalue_lies_within_the_residual_of_every_node():
    places, roots = measures(50, 40, "spread")
    rule = gauss(run(places, roots, 12))
    distance = (rule.nodes[:, 0, :, None] - places[:, None]).abs().amin(-1)
    assert (distance <= rule.residuals[:, 0] + 1e-12).all()
    assert (rule.residuals.amin(-1) < 0.1).all()


@pytest.mark.parametrize("style", ["spread", "tied", "orders"])
@pytest.mark.parametrize(("atoms", "unit"), [(6, 1.0), (14, 1e-6), (14, 1e6)])
def test_the_true_mass_is_always_within_the_limits(style, atoms, unit):
    places, roots = measures(600, atoms, style)
    places = unit * places
    state = None
    for steps in range(1, atoms + 2):
        state = (
            run(places, roots, 1, keep_basis=True)
            if state is None
            else extend(state, lambda v: v * places[:, None], 1)
        )
        for name, t in points_of(places).items():
            low, high = mass_limits(state, t)
            left, up_to = masses(places, roots, t)
            assert (low <= left + 1e-12).all(), (steps, name)
            assert (high >= up_to - 1e-12).all(), (steps, name)


def test_limits_tighten_with_every_step():
    places, roots = measures(300, 12, "spread")
    t = torch.full((300, 1), 0.2, dtype=torch.float64)
    state = run(places, roots, 1, keep_basis=True)
    low, high = mass_limits(state, t)
    widths = [float((high - low).mean())]
    for _ in range(11):
        state = extend(state, lambda v: v * places[:, None], 1)
        tighter_low, tighter_high = mass_limits(state, t)
        # 3e-5: what limits are widened by against rounding, which may shift between steps.
        assert (tighter_low >= low - 3e-5).all()
        assert (tighter_high <= high + 3e-5).all()
        low, high = tighter_low, tighter_high
        widths.append(float((high - low).mean()))
    assert widths[0] > 0.5
    assert widths[6] < 0.6 * widths[0]
    assert widths[-1] < 1e-4


def test_limits_are_exact_once_every_atom_is_found():
    places, roots = measures(200, 5, "spread")
    state = run(places, roots, 8)
    assert state.finished.all()
    t = places[:, :1]
    low, high = mass_limits(state, t)
    left, up_to = masses(places, roots, t)
    torch.testing.assert_close(low, left, rtol=0, atol=1e-6)
    torch.testing.assert_close(high, up_to, rtol=0, atol=1e-6)
    between = (places.amin(1, keepdim=True) + places.sort(1).values[:, 1:2]) / 2
    low, high = mass_limits(state, between)
    assert (high - low).max() < 1e-5


def test_limits_are_sharp():
    # The rule with a node at t is a measure with the same moments, so a run on it gives the same limits, and it
    # attains both: low is its mass left of t, high its mass up to t. Here with one step: α = 0, β = 1.
    places = torch.tensor([[-1.0, 1.0]]).double()
    roots = torch.full((1, 2), 0.5).double().sqrt()
    one_step = run(places, roots, 1)
    t = 0.5  # nodes t and −1/t, since both must have mean 0 and variance 1: −2 with 1/5, 1/2 with 4/5
    low, high = mass_limits(one_step, t)
    assert float(low) == pytest.approx(0.2, abs=2e-5)
    assert float(high) == pytest.approx(1.0, abs=2e-5)
    attaining = torch.tensor([[-2.0, 0.5]]).double()
    same = run(attaining, torch.tensor([[0.2, 0.8]]).double().sqrt(), 1)
    torch.testing.assert_close(same.diagonal, one_step.diagonal, rtol=0, atol=1e-15)
    torch.testing.assert_close(same.last_off_diagonal, one_step.last_off_diagonal)


def test_a_point_on_a_ritz_value_has_finite_valid_limits():
    # Symmetric measures have a Ritz value at 0 after an odd number of steps, where the prescribed entry is infinite.
    places = torch.tensor([[-3.0, -2.0, -1.0, 1.0, 2.0, 3.0]]).double()
    roots = torch.full((1, 6), 1 / 6).double().sqrt()
    for steps in (1, 3, 5):
        low, high = mass_limits(run(places, roots, steps), 0.0)
        weight = gauss(run(places, roots, steps)).weights[0, 0, steps // 2]
        assert float(low) == pytest.approx(0.5 - float(weight) / 2, abs=2e-5)
        assert float(high) == pytest.approx(0.5 + float(weight) / 2, abs=2e-5)


@pytest.mark.parametrize("distance", [0.0, 1e-14, 1e-9, 1e-6, 1e-4, 1e-2])
def test_the_gap_is_the_christoffel_function_also_near_ritz_values(distance):
    places, roots = measures(200, 60, "spread")
    found = run(places, roots, 9)
    t = gauss(found).nodes[..., 4] + distance
    # 1/Σ p_j(t)², j = 0 … m, with the orthonormal polynomials from their recurrence.
    betas = torch.cat([found.off_diagonal, found.last_off_diagonal[..., None]], -1)
    before, current, beta = torch.zeros_like(t), torch.ones_like(t), torch.zeros_like(t)
    total = torch.ones_like(t)
    for j in range(9):
        following = ((t - found.diagonal[..., j]) * current - beta * before) / betas[..., j]
        before, current, beta = current, following, betas[..., j]
        total += current.square()
    low, high = mass_limits(found, t, rounding=0)
    torch.testing.assert_close(high - low, 1 / total + 2 * SLACK, rtol=0, atol=1e-12)


def test_the_threshold_may_differ_between_leading_indices(generator, with_eigenvalues):
    matrices = with_eigenvalues(torch.randn(2, 40, generator=generator))
    found = lanczos(lambda v: v @ matrices, probes((2,), 3, 40, generator), 10)
    t = torch.tensor([[0.1], [-0.4]])
    low, high = mass_limits(found, t)
    for member in range(2):
        alone = mass_limits(found, float(t[member]))
        torch.testing.assert_close((low[member], high[member]), (alone[0][member], alone[1][member]))


def test_coarse_products_get_wider_limits():
    places, roots = measures(50, 12, "spread")
    state = run(places, roots, 9)
    fine, coarse = (mass_limits(state, 0.0, rounding=r) for r in (1e-10, 1e-2))
    assert (coarse[0] <= fine[0]).all()
    assert (coarse[1] >= fine[1]).all()
    assert ((coarse[1] - coarse[0]) > (fine[1] - fine[0])).any()


def test_counts_converge_to_the_exact_fractions(generator, with_eigenvalues):
    eigenvalues = torch.cat([torch.linspace(-2, -0.5, 60), torch.zeros(90), torch.linspace(0.5, 4, 150)])
    matrix = with_eigenvalues(eigenvalues)
    found = lanczos(lambda v: v @ matrix, probes((), 40, 300, generator), 60)
    for t, expected in ((-0.1, 0.2), (0.1, 0.5)):
        low, high = mass_limits(found, t)
        noise = low.std() / 40**0.5
        assert (high - low).mean() < 0.01
        assert abs(low.mean() - expected) < 4 * noise + 0.01


def test_float32_limits_hold_with_their_rounding(generator, with_eigenvalues):
    eigenvalues = torch.cat([1e-2 * torch.randn(280, generator=generator), torch.linspace(1, 80, 20)])
    matrix = with_eigenvalues(eigenvalues)
    single = matrix.float()
    start = probes((), 8, 300, generator, dtype=torch.float32)
    values, basis = torch.linalg.eigh(matrix)
    mass = (start.double() @ basis).square()
    for steps in (20, 60, 150):
        found = lanczos(lambda v: v @ single, start, steps)
        for t in (-1e-3, 1e-3, 0.5):
            low, high = mass_limits(found, t, rounding=1e-6)
            true = mass[:, values < t].sum(-1) / mass.sum(-1)
            assert (low <= true + 1e-6).all()
            assert (high >= true - 1e-6).all()


def test_refusals_say_what_to_do():
    state = run(*measures(1, 4, "spread"), 2)
    with pytest.raises(Refused, match="t is not finite"):
        mass_limits(state, float("nan"))
    with pytest.raises(Refused, match="rounding is -1"):
        mass_limits(state, 0.0, rounding=-1)
