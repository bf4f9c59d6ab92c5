from __future__ import annotations

import numpy as np
import pytest

from oracles.linear_networks import LinearModule
from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.linear_networks.gradient_flow import ARCHITECTURES, integrate
from skiplab.theory.linear_networks.single_mode import Mode, aligned_weights

PRODUCTS = ("plain", "residual", "hyper-residual")
every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


def random_start(layers: int, spread: float, *stream: int | str) -> np.ndarray:
    return spread * numpy_generator("modes", *stream).standard_normal(layers)


@every_architecture
def test_slope_and_hessian_are_the_derivatives(architecture: str) -> None:
    mode = Mode(architecture, 5, 1.7)
    a = np.stack([random_start(5, 0.4, architecture, k) for k in range(3)])
    h = 1e-6
    for k, bump in enumerate(h * np.eye(5)):
        slope = (mode.energy(a + bump) - mode.energy(a - bump)) / (2 * h)
        np.testing.assert_allclose(-mode.velocity(a)[:, k], slope, rtol=1e-6, atol=1e-6)
        bend = (mode.velocity(a - bump) - mode.velocity(a + bump)) / (2 * h)
        np.testing.assert_allclose(mode.hessian(a)[:, k], bend, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("architecture", "place"),
    [
        ("plain", (0, 0)),
        ("residual", (-1, -1)),
        ("hyper-residual", (-1, -2)),
        ("dense-residual", (-1, -1)),
    ],
)
def test_the_saddles_of_three_layers(architecture: str, place: tuple[int, int]) -> None:
    """Exact: nothing moves there, though u ≠ s, and the curvatures are ∓(s − u)."""
    mode = Mode(architecture, 2, 3.0)
    at = mode.saddle()
    assert tuple(at) == place
    assert not mode.velocity(at).any()
    left = 3.0 - float(mode.answer(at))
    assert left == (2.0 if architecture == "dense-residual" else 3.0)
    np.testing.assert_allclose(np.linalg.eigvalsh(mode.hessian(at)), [-left, left], rtol=1e-15)


def test_true_dense_skips_with_three_matrices_have_no_saddle() -> None:
    """With p = a₁ + 1, q = a₂ + 1, r = a₃ + 1 the slopes are qr + 1, pr and pq + 1, which cannot all vanish.

    pr = 0 makes one of qr + 1 and pq + 1 equal to 1.
    """
    a = numpy_generator("no saddle").standard_normal((10, 3))
    p, q, r = (a + 1).T
    slopes = np.stack([q * r + 1, p * r, p * q + 1], axis=-1)
    np.testing.assert_allclose(Mode("dense-residual", 3, 2.0).slope(a), slopes, atol=1e-13)
    with pytest.raises(Refused, match="a known saddle with 2 weight matrices, not 3"):
        Mode("dense-residual", 3, 2.0).saddle()


def test_ten_layers_start_at_nine_factorial_or_256() -> None:
    nothing = np.zeros(9)
    answers = [float(Mode(architecture, 9, 3.0).answer(nothing)) for architecture in ARCHITECTURES]
    assert answers == [0.0, 1.0, 362_880.0, 256.0]


@pytest.mark.parametrize("sizes", [(3, 5, 4, 6), (5, 4, 3, 4)])
@every_architecture
def test_modes_are_the_flow_of_aligned_matrices(architecture: str, sizes: tuple[int, ...]) -> None:
    """Eqs 21–23 for several modes at once, rectangular identities included; no cross-mode parts appear."""
    if architecture == "dense-residual":
        sizes = (3,) * len(sizes)
    basis = np.linalg.qr(numpy_generator("basis").standard_normal((3, 3)))[0]
    strengths = np.stack([random_start(3, 0.4, "aligned", k) for k in range(3)])
    singular = (2.5, 1.2, 0.6)
    correlation = np.zeros((sizes[-1], sizes[0]))
    correlation[:3, :3] = basis @ np.diag(singular) @ basis.T
    module = LinearModule(architecture, correlation, sizes)
    times = np.array([0.1, 0.4])
    flown = integrate(module.velocity, aligned_weights(strengths, sizes, basis), times, 1e-12)
    modes = [
        Mode(architecture, 3, s).flow(a, times, rtol=1e-8) for s, a in zip(singular, strengths, strict=True)
    ]
    for k in range(len(times)):
        wanted = aligned_weights(np.stack([path[k] for path in modes]), sizes, basis)
        for one, two in zip(flown, wanted, strict=True):
            np.testing.assert_allclose(one[k], two, atol=1e-6)


@pytest.mark.parametrize("spread", [1e-4, 0.1])
@pytest.mark.parametrize("architecture", PRODUCTS)
def test_times_along_the_path_are_those_of_the_integral(architecture: str, spread: float) -> None:
    """They span forty powers of ten; the integral rests on conserved differences of squares, not on a solver."""
    mode = Mode(architecture, 9, 3.0)
    for run in range(3):
        start = random_start(9, spread, "race", run)
        path = mode.follow(start, within=0.05)
        assert abs(path.answers[-1] / 3 - 1) == pytest.approx(0.05, abs=1e-8)
        assert path.duration == pytest.approx(mode.time_to_learn(start, within=0.05), rel=1e-7)
        squares = (path.strengths + mode.shifts) ** 2
        drift = np.abs((squares - squares[:, :1]) - (squares - squares[:, :1])[0]).max()
        assert drift < 1e-7 * squares.max()


@pytest.mark.parametrize("architecture", ["residual", "hyper-residual", "dense-residual"])
def test_a_stiff_solver_in_time_arrives_where_the_path_ends(architecture: str) -> None:
    mode, start = Mode(architecture, 9, 3.0), random_start(9, 1e-4, "stiff")
    path = mode.follow(start, within=0.05)
    end = mode.flow(start, [path.duration])[-1]
    assert float(mode.answer(end)) == pytest.approx(float(path.answers[-1]), rel=1e-6)


def test_two_strengths_have_the_textbook_time() -> None:
    """Saxe et al.: from a = b = √u₀ the time to u is ln[u(s − u₀)/(u₀(s − u))]/(2s)."""
    s, u0, u = 3.0, 1e-6, 2.85
    exact = np.log(u * (s - u0) / (u0 * (s - u))) / (2 * s)
    mode = Mode("plain", 2, s)
    start = np.full(2, np.sqrt(u0))
    assert mode.time_to_learn(start, within=0.05) == pytest.approx(exact, rel=1e-9)
    assert mode.follow(start, within=0.05).duration == pytest.approx(exact, rel=1e-7)


def test_a_skip_is_another_start_except_for_dense_skips() -> None:
    start, plain = random_start(4, 0.1, "moved"), Mode("plain", 4, 2.0)
    for architecture in ("residual", "hyper-residual"):
        mode = Mode(architecture, 4, 2.0)
        times = [
            mode.follow(start, within=0.01).duration,
            plain.follow(start + mode.shifts, within=0.01).duration,
        ]
        assert times[0] == pytest.approx(times[1], rel=1e-8)
    dense = Mode("dense-residual", 4, 2.0)
    assert float(dense.answer(start)) != pytest.approx(float(plain.answer(start + dense.shifts)), rel=0.1)


def test_hyper_is_first_in_time_but_not_in_steps() -> None:
    """Ten layers: 2e-10 against .08 units of time, but 62 against 4.4 units of the sharpest curvature."""
    start = random_start(9, 1e-4, "steps")
    found = {}
    for architecture in PRODUCTS[1:]:
        mode = Mode(architecture, 9, 3.0)
        path = mode.follow(start, within=0.05)
        found[architecture] = path.duration, path.duration * mode.sharpest(path)
    assert found["residual"] == pytest.approx((0.0793, 4.38), rel=0.01)
    assert found["hyper-residual"] == pytest.approx((1.932e-10, 62.0), rel=0.01)


def test_learned_modes_take_no_time_and_the_saddle_takes_for_ever() -> None:
    residual, plain = Mode("residual", 2, 1.0), Mode("plain", 2, 1.0)
    assert residual.time_to_learn([0.0, 0.0], within=0.01) == 0
    assert residual.follow([0.0, 0.0], within=0.01).duration == 0
    assert plain.time_to_learn([0.3, -0.3], within=0.01) == float("inf")
    assert plain.time_to_learn([0.0, 0.0], within=0.01) == float("inf")


def test_one_matrix_learns_exponentially() -> None:
    mode = Mode("plain", 1, 2.0)
    assert mode.time_to_learn([0.0], within=0.05) == pytest.approx(np.log(20), rel=1e-10)
    assert mode.follow([0.0], within=0.05).duration == pytest.approx(np.log(20), rel=1e-7)


def test_wrong_arguments_are_refused() -> None:
    mode = Mode("plain", 2, 1.0)
    for start in ([0.0, 0.0], [0.3, -0.3]):
        with pytest.raises(Refused, match="the mode stays at or falls into a saddle from"):
            mode.follow(start, within=0.1)
    with pytest.raises(Refused, match=r"the start has shape \(3,\), not \(2,\)"):
        mode.follow([0.1, 0.1, 0.1], within=0.1)
    with pytest.raises(Refused, match=r"s is -1\.0, but a singular value"):
        Mode("plain", 2, -1.0)
    with pytest.raises(Refused, match="dense skips conserve no differences of squares; use follow"):
        Mode("dense-residual", 2, 1.0).time_to_learn([0.1, 0.1], within=0.1)
    with pytest.raises(Refused, match=r"strengths have shape \(2, 1\), but sizes \(3, 3\) have 3 modes"):
        aligned_weights(np.ones((2, 1)), (3, 3), np.eye(2))
