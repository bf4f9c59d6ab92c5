from __future__ import annotations

import numpy as np
import pytest
import torch

from skiplab.architectures import linear
from skiplab.checks import Refused
from skiplab.randomness import numpy_generator, torch_generator
from skiplab.theory.linear_networks.gradient_flow import (
    ARCHITECTURES,
    LinearNet,
    ThreeLayers,
    identities,
    step_to_zero,
)

CLASSES = {
    "plain": linear.PlainLinearNet,
    "residual": linear.ResidualLinearNet,
    "hyper-residual": linear.HyperResidualLinearNet,
    "dense-residual": linear.DenseResidualLinearNet,
}
PAPER = np.array([[1.0, 1.0], [1.0, -1.0]]) / np.sqrt(2)
every_architecture = pytest.mark.parametrize("architecture", ARCHITECTURES)


def orthogonal(size: int, *stream: int | str) -> np.ndarray:
    return np.linalg.qr(numpy_generator(*stream, size).standard_normal((size, size)))[0]


def network(
    architecture: str, sizes: tuple[int, ...]
) -> tuple[LinearNet, linear.PlainLinearNet, list[np.ndarray]]:
    draw = numpy_generator(0, "test", architecture)
    ours = LinearNet(architecture, sizes, draw.standard_normal((sizes[-1], sizes[0])))
    module = CLASSES[architecture](sizes, generator=torch_generator(0, "test"), dtype=torch.float64)
    weights = [0.4 * draw.standard_normal(tuple(layer.linear.weight.shape)) for layer in module.layers]
    return ours, module, weights


def descend(
    module: linear.PlainLinearNet, correlation: np.ndarray, start: list[np.ndarray], step: float, steps: int
) -> list[np.ndarray]:
    """Plain gradient descent on the module's own weights, by autograd."""
    parameters = list(module.parameters())
    with torch.no_grad():
        for parameter, weight in zip(parameters, start, strict=True):
            parameter.copy_(torch.from_numpy(weight))
    target = torch.from_numpy(correlation)
    for _ in range(steps):
        loss = 0.5 * ((target - module.matrix()) ** 2).sum()
        slopes = torch.autograd.grad(loss, parameters)
        with torch.no_grad():
            for parameter, slope in zip(parameters, slopes, strict=True):
                parameter -= step * slope
    return [parameter.detach().numpy().copy() for parameter in parameters]


def extrapolated(
    module: linear.PlainLinearNet, correlation: np.ndarray, start: list[np.ndarray], until: float, coarse: int
) -> list[np.ndarray]:
    levels = [descend(module, correlation, start, until / n, n) for n in (coarse * 2**k for k in range(5))]
    return [step_to_zero([level[part] for level in levels]) for part in range(len(start))]


RAGGED = {
    "plain": (3, 5, 2, 4, 3),
    "residual": (3, 5, 2, 4, 3),
    "hyper-residual": (2, 4, 3),
    "dense-residual": (3, 3, 3, 3),
}


@every_architecture
def test_the_velocity_is_the_modules_gradient(architecture: str) -> None:
    ours, module, weights = network(architecture, RAGGED[architecture])
    moved = descend(module, ours.correlation, weights, 1.0, 1)
    for before, after, rate in zip(weights, moved, ours.velocity(tuple(weights)), strict=True):
        np.testing.assert_allclose(after - before, rate, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(
        ours.matrix(tuple(np.asarray(p.detach()) for p in module.parameters())),
        module.matrix().detach(),
        atol=1e-12,
    )


@every_architecture
def test_the_flow_is_gradient_descent_with_a_vanishing_step(architecture: str) -> None:
    """Any depth and widths: 1e-6 asked, extrapolation reaches far less."""
    ours, module, weights = network(architecture, RAGGED[architecture])
    until = 0.15
    found = extrapolated(module, ours.correlation, weights, until, 20)
    flown = ours.flow(weights, [until])
    for one, two in zip(flown, found, strict=True):
        np.testing.assert_allclose(one[-1], two, atol=1e-6)
    # Without extrapolation the same descent is still far off, so the agreement means something.
    rough = descend(module, ours.correlation, weights, until / 20, 20)
    assert max(np.abs(one[-1] - two).max() for one, two in zip(flown, rough, strict=True)) > 1e-4


def test_many_networks_flow_as_each_alone() -> None:
    ours, _, weights = network("residual", (3, 4, 2))
    stacked = [np.stack([weight, 0.5 * weight, -weight]) for weight in weights]
    together = ours.flow(stacked, [0.1, 0.3], rtol=1e-12)
    assert ours.energy(tuple(stacked)).shape == (3,)
    for k in range(3):
        alone = ours.flow([weight[k] for weight in stacked], [0.1, 0.3], rtol=1e-12)
        for one, two in zip(together, alone, strict=True):
            np.testing.assert_allclose(one[:, k], two, atol=1e-9)


@every_architecture
@pytest.mark.parametrize("hidden", [2, 3, 5])
def test_modes_of_three_layers_are_the_matrices_in_another_basis(architecture: str, hidden: int) -> None:
    """Rectangular identities included: 2 inputs, 3 outputs, hidden layers narrower and wider."""
    inputs, outputs = (hidden, hidden) if architecture == "dense-residual" else (2, 3)
    U, V = orthogonal(outputs, 1, "U"), orthogonal(inputs, 1, "V")
    modes = ThreeLayers(architecture, (2.0, 0.7), U, V, hidden)
    S = np.zeros((outputs, inputs))
    S[0, 0], S[1, 1] = 2.0, 0.7
    whole = LinearNet(architecture, (inputs, hidden, outputs), U @ S @ V.T)
    draw = numpy_generator(2, "weights")
    a, b = draw.standard_normal((4, hidden, inputs)), draw.standard_normal((4, hidden, outputs))
    weights = modes.weights(a, b)
    np.testing.assert_allclose(modes.energy(a, b), whole.energy(weights), rtol=1e-12)
    for one, two in zip(modes.velocity(a, b), modes.modes(*whole.velocity(weights)), strict=True):
        np.testing.assert_allclose(one, two, atol=1e-12)
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
    with pytest.raises(Refused, match=r"correlation has shape \(2, 2\), but sizes \(2, 3\) need \(3, 2\)"):
        LinearNet("plain", (2, 3), np.eye(2))
    with pytest.raises(Refused, match=r"sizes are \(2, 3, 2\), but skips from all layers need equal ones"):
        LinearNet("dense-residual", (2, 3, 2), np.eye(2))
    with pytest.raises(Refused, match=r"output_modes of shape .* is not an orthogonal matrix"):
        ThreeLayers("plain", (1.0,), 2 * np.eye(2), np.eye(2), 2)
    with pytest.raises(Refused, match="there are 3 strengths, but at most 2 modes"):
        ThreeLayers("plain", (1.0, 1.0, 1.0), np.eye(2), np.eye(3), 2)
    with pytest.raises(Refused, match="give as many outputs as inputs"):
        ThreeLayers("plain", (1.0,), np.eye(2), np.eye(3), 2, printed=True)
    with pytest.raises(Refused, match="need layers of equal width"):
        ThreeLayers("dense-residual", (1.0,), np.eye(2), np.eye(2), 3)
