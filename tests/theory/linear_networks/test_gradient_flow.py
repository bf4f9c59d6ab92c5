from __future__ import annotations

import numpy as np
import pytest

from oracles.linear_networks import LinearModule
from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.linear_networks.gradient_flow import (
    ARCHITECTURES,
    ThreeLayers,
    identities,
    integrate,
    step_to_zero,
)

PAPER = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


def orthogonal(size: int, *stream: int | str) -> np.ndarray:
    return np.linalg.qr(numpy_generator(*stream, size).standard_normal((size, size)))[0]


def descend(
    module: LinearModule, start: tuple[np.ndarray, ...], step: float, steps: int
) -> tuple[np.ndarray, ...]:
    """Plain gradient descent on the module's own weights."""
    for _ in range(steps):
        start = tuple(part + step * rate for part, rate in zip(start, module.velocity(start), strict=True))
    return start


RAGGED = {
    "plain": (3, 5, 2, 4, 3),
    "residual": (3, 5, 2, 4, 3),
    "hyper-residual": (2, 4, 3),
    "dense-residual": (3, 3, 3, 3),
}


@every_architecture
def test_the_flow_is_gradient_descent_with_a_vanishing_step(architecture: str) -> None:
    """Any depth and widths: 1e-6 asked, extrapolation reaches far less."""
    sizes, draw = RAGGED[architecture], numpy_generator(0, "test", architecture)
    module = LinearModule(architecture, draw.standard_normal((sizes[-1], sizes[0])), sizes)
    weights = tuple(0.4 * draw.standard_normal(shape) for shape in module.shapes)
    until = 0.15
    levels = [descend(module, weights, until / n, n) for n in (20 * 2**k for k in range(5))]
    found = [step_to_zero(parts) for parts in zip(*levels, strict=True)]
    flown = integrate(module.velocity, weights, [until], 1e-10)
    for one, two in zip(flown, found, strict=True):
        np.testing.assert_allclose(one[-1], two, atol=1e-6)
    # Without extrapolation the same descent is still far off, so the agreement means something.
    assert max(np.abs(one[-1] - two).max() for one, two in zip(flown, levels[0], strict=True)) > 1e-4


@every_architecture
@pytest.mark.parametrize("hidden", [2, 3, 5])
def test_modes_of_three_layers_are_the_matrices_in_another_basis(architecture: str, hidden: int) -> None:
    """Rectangular identities included: 2 inputs, 3 outputs, hidden layers narrower and wider."""
    inputs, outputs = (hidden, hidden) if architecture == "dense-residual" else (2, 3)
    U, V = orthogonal(outputs, 1, "U"), orthogonal(inputs, 1, "V")
    modes = ThreeLayers(architecture, (2.0, 0.7), U, V, hidden)
    S = np.zeros((outputs, inputs))
    S[0, 0], S[1, 1] = 2.0, 0.7
    whole = LinearModule(architecture, U @ S @ V.T, (inputs, hidden, outputs))
    draw = numpy_generator(2, "weights")
    a, b = draw.standard_normal((4, hidden, inputs)), draw.standard_normal((4, hidden, outputs))
    weights = modes.weights(a, b)
    rates = modes.velocity(a, b)
    for k in range(4):
        alone = tuple(part[k] for part in weights)
        assert modes.energy(a[k], b[k]) == pytest.approx(whole.energy(alone), rel=1e-12)
        for one, two in zip(rates, modes.modes(*whole.velocity(alone)), strict=True):
            np.testing.assert_allclose(one[k], two, atol=1e-12)
    back = modes.modes(*weights)
    np.testing.assert_allclose(back[0], a, atol=1e-14)
    np.testing.assert_allclose(back[1], b, atol=1e-14)


@pytest.mark.parametrize("skip", [0.0, 1.0])
def test_two_modes_give_the_papers_equations_corrected_and_printed(skip: float) -> None:
    """Eqs 11–18 written out; printed and corrected ḃ¹ differ by |a²·b¹ − a¹·b²||a²|, ḃ² likewise."""
    architecture = "residual" if skip else "plain"
    corrected, printed = (
        ThreeLayers(architecture, (3.0, 1.5), PAPER, PAPER, 2, printed=p) for p in (False, True)
    )
    a, b = numpy_generator(3, "two modes").standard_normal((2, 2, 2))
    a1, a2 = (a + skip * PAPER).T
    b1, b2 = (b + skip * PAPER).T
    da = [(3 - a1 @ b1) * b1 - (a1 @ b2) * b2, (1.5 - a2 @ b2) * b2 - (a2 @ b1) * b1]
    db = [(3 - a1 @ b1) * a1 - (a2 @ b1) * a2, (1.5 - a2 @ b2) * a2 - (a1 @ b2) * a1]
    db_printed = [(3 - a1 @ b1) * a1 - (a1 @ b2) * a2, (1.5 - a2 @ b2) * a2 - (a2 @ b1) * a1]
    np.testing.assert_allclose(corrected.velocity(a, b), [np.transpose(da), np.transpose(db)], atol=1e-13)
    np.testing.assert_allclose(
        printed.velocity(a, b), [np.transpose(da), np.transpose(db_printed)], atol=1e-13
    )
    apart = np.linalg.norm(printed.velocity(a, b)[1] - corrected.velocity(a, b)[1], axis=0)
    stated = abs(a2 @ b1 - a1 @ b2) * np.array([np.linalg.norm(a2), np.linalg.norm(a1)])
    np.testing.assert_allclose(apart, stated, rtol=1e-12)
    assert stated.min() > 0.1


def test_only_the_corrected_equations_descend_the_energy() -> None:
    a, b = numpy_generator(4, "energy").standard_normal((2, 3, 3))
    U, V = orthogonal(3, 4, "U"), orthogonal(3, 4, "V")
    for printed in (False, True):
        net = ThreeLayers("residual", (2.0, 1.0, 0.5), U, V, 3, printed=printed)
        h, slopes = 1e-6, np.zeros((2, 3, 3))
        for place in np.ndindex(3, 3):
            bump = np.zeros((3, 3))
            bump[place] = h
            slopes[0][place] = (net.energy(a + bump, b) - net.energy(a - bump, b)) / (2 * h)
            slopes[1][place] = (net.energy(a, b + bump) - net.energy(a, b - bump)) / (2 * h)
        apart = np.abs(np.stack(net.velocity(a, b)) + slopes).max((1, 2))
        assert apart[0] < 1e-7
        assert (apart[1] < 1e-7) == (not printed)


def test_cooperation_and_competition_are_orthogonal_at_zero_if_the_hidden_layer_is_wide_enough() -> None:
    U, V = orthogonal(4, 5, "U"), orthogonal(3, 5, "V")

    def cosines(hidden: int) -> np.ndarray:
        net = ThreeLayers("residual", (2.0, 1.0), U, V, hidden)
        a, b = np.zeros((hidden, 3)), np.zeros((hidden, 4))
        first, second = net.cooperation(a, b)[0], net.competition(a, b)[0]
        assert np.linalg.norm(second, axis=0).min() > 1e-3
        return np.asarray((first * second).sum(0)[:2])

    np.testing.assert_allclose(cosines(4), 0, atol=1e-15)
    np.testing.assert_allclose(cosines(6), 0, atol=1e-15)
    assert np.abs(cosines(3)).max() > 1e-2


def test_equal_units_stay_equal_unless_skips_part_them() -> None:
    draw = numpy_generator(6, "overlap")
    a, b = draw.standard_normal((2, 4, 3))
    a[0], b[0] = a[1], b[1]
    U, V = orthogonal(3, 6, "U"), orthogonal(3, 6, "V")
    for architecture, stays in (("plain", True), ("residual", False)):
        path = ThreeLayers(architecture, (3.0, 2.0, 1.0), U, V, 4).flow(a, b, [1.0, 5.0])
        gap = max(np.abs(part[:, 0] - part[:, 1]).max() for part in path)
        assert (gap == 0) == stays
    # Equal weights in alone, as the text has it, do not stay equal.
    b[0] = -b[1]
    a_later, _ = ThreeLayers("plain", (3.0, 2.0, 1.0), U, V, 4).flow(a, b, [0.1])
    assert np.abs(a_later[-1, 0] - a_later[-1, 1]).max() > 1e-2


def test_steps_of_figure_5b() -> None:
    """Residual 75; plain from a = v, b = u 75, from a = [1, 1]/√2, b = u 140 (printed: 243), from both never."""
    plain, residual = (ThreeLayers(name, (3.0, 1.5), PAPER, PAPER, 2) for name in ("plain", "residual"))
    printed = ThreeLayers("plain", (3.0, 1.5), PAPER, PAPER, 2, printed=True)
    ones, nothing = np.full((2, 2), 1 / np.sqrt(2)), np.zeros((2, 2))
    how = {"rate": 0.01, "within": 0.075, "most": 2000}
    assert residual.steps_to_learn(nothing, nothing, **how) == 75
    starts = np.stack([PAPER, ones, ones]), np.stack([PAPER, PAPER, ones])
    assert plain.steps_to_learn(*starts, **how).tolist() == [75, 140, -1]
    assert printed.steps_to_learn(ones, PAPER, **how) == 243
    a, b = plain.descend(ones, ones, 0.01, 2000)
    assert plain.energy(a[-1], b[-1]) == pytest.approx(1.125, abs=1e-12)


def test_descending_and_counting_agree() -> None:
    net = ThreeLayers("hyper-residual", (3.0, 1.5), PAPER, PAPER, 2)
    a, b = net.descend(np.zeros((2, 2)), np.zeros((2, 2)), 0.01, 100)
    learned = np.abs(net.error(a, b)).max((-2, -1)) <= 0.05
    steps = net.steps_to_learn(a[0], b[0], 0.01, within=0.05, most=100)
    assert learned.argmax() == steps > 0


def test_richardson_removes_one_order_a_result() -> None:
    steps = 0.1 / 2.0 ** np.arange(4)
    results = [7 + 3 * h - 2 * h**2 + 5 * h**3 for h in steps]
    assert abs(step_to_zero(results) - 7) < 1e-12
    assert step_to_zero(results[:1]) == results[0]
    # Two results cancel the term in h alone: 2·fine − coarse.
    assert step_to_zero(results[:2]) == pytest.approx(2 * results[1] - results[0], abs=1e-14)


def test_identities_count_as_eqs_5_to_7() -> None:
    assert identities("plain", 3).tolist() == [0, 0, 0]
    assert identities("residual", 3).tolist() == [1, 1, 1]
    assert identities("hyper-residual", 3).tolist() == [1, 2, 3]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(Refused, match=r"Architecture 'residul' is unknown.*Did you mean residual"):
        identities("residul", 2)
    with pytest.raises(Refused, match=r"output_modes of shape .* is not an orthogonal matrix"):
        ThreeLayers("plain", (1.0,), 2 * np.eye(2), np.eye(2), 2)
    with pytest.raises(Refused, match="there are 3 strengths, but at most 2 modes"):
        ThreeLayers("plain", (1.0, 1.0, 1.0), np.eye(2), np.eye(3), 2)
    with pytest.raises(Refused, match="give as many outputs as inputs"):
        ThreeLayers("plain", (1.0,), np.eye(2), np.eye(3), 2, printed=True)
    with pytest.raises(Refused, match="need layers of equal width"):
        ThreeLayers("dense-residual", (1.0,), np.eye(2), np.eye(2), 3)
