"""Lemmas A1–A3 on nets small enough to list every path and every sign of every weight."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.shattering import covariances as theory
from skiplab.theory.shattering import path_sums as paths

SIZES = [(2, 2), (3, 2), (2, 3)]


def configurations(layers: int, width: int) -> tuple[paths.Gates, paths.Gates]:
    stream = numpy_generator(0, "gates", layers, width)
    return stream.random((layers, width)) < 0.7, stream.random((layers, width)) < 0.7


@pytest.mark.parametrize(("layers", "width"), [*SIZES, (4, 2)])
def test_path_weights_are_orthogonal(layers: int, width: int) -> None:
    """Equation A3 over all nets of weights ±σ."""
    found = paths.layered_paths(layers, width)
    assert len(found) == width**layers
    nets = paths.sign_weights(layers - 1, width, 0.7)
    weights = np.stack([path.weight(nets) for path in found])
    gram = weights @ weights.T / len(nets)
    np.testing.assert_allclose(gram, 0.7 ** (2 * (layers - 1)) * np.eye(len(found)), atol=1e-14)


@pytest.mark.parametrize(("layers", "width"), [*SIZES, (4, 2)])
def test_lemma_a1(layers: int, width: int) -> None:
    A, B = configurations(layers, width)
    found = paths.layered_paths(layers, width)
    nets = paths.sign_weights(layers - 1, width, 0.7)
    for other in (A, B):
        expected = paths.lemma_a1(A, other, 0.7)
        assert paths.second_moment(found, A, other, 0.7) == pytest.approx(expected)
        assert paths.listed_moments(found, A, other, nets) == pytest.approx((0.0, expected), abs=1e-13)


def test_lemma_a1_needs_two_layers() -> None:
    """Paths of one neuron cross no weight: their sum is sure, and its square is not its number."""
    A = np.array([[True, True]])
    found = paths.layered_paths(1, 2)
    assert paths.mean(found, A) == 2
    assert paths.second_moment(found, A, A, 1.0) == 4 != paths.lemma_a1(A, A, 1.0)


@pytest.mark.parametrize(("layers", "width"), [*SIZES, (1, 3)])
@pytest.mark.parametrize("start", [0, 1])
def test_lemma_a3_mended(layers: int, width: int, start: int) -> None:
    A, B = configurations(layers, width)
    found = paths.paths_from(start, layers, width, skips=True)
    assert len(found) == (1 + width) ** layers
    expected = paths.lemma_a3(A, B, 0.7)
    assert paths.second_moment(found, A, B, 0.7) == pytest.approx(expected)
    if layers * width**2 <= 12:
        nets = paths.sign_weights(layers, width, 0.7)
        assert paths.listed_moments(found, A, B, nets) == pytest.approx((1.0, expected))


def test_lemma_a3_as_printed_fails_for_three_reasons() -> None:
    everything = np.ones((3, 2), dtype=bool)
    found = paths.printed_residual_paths(3, 2)
    weights = [path.weights for path in found]
    assert sum(not crossed for crossed in weights) == 1 + 3 * 2  # the empty path and those of one neuron
    assert len(set(weights)) < len(weights) - 6  # {1, 2} and {1, 3} carry W[., ., 1]
    exact = paths.second_moment(found, everything, everything, 0.7)
    nets = paths.sign_weights(3, 2, 0.7)
    assert paths.listed_moments(found, everything, everything, nets)[1] == pytest.approx(exact)
    assert exact > 2 * paths.printed_lemma_a3(everything, everything, 0.7)


@pytest.mark.parametrize("skips", [False, True])
def test_typical_gates_recover_theorems_1_and_2(skips: bool) -> None:
    """Four units, half active, a quarter together, and σ² = 2/N, as the proofs count."""
    A = np.tile([True, True, False, False], (3, 1))
    B = np.tile([True, False, True, False], (3, 1))
    found = paths.paths_from(0, 3, 4, skips=skips)
    sigma = math.sqrt(2 / 4)
    expected = theory.residual(3) if skips else theory.plain(3)
    assert paths.second_moment(found, A, A, sigma) == pytest.approx(expected.variance)
    assert paths.second_moment(found, A, B, sigma) == pytest.approx(expected.covariance)
    assert paths.mean(found, A) == expected.mean


@pytest.mark.parametrize("skips", [False, True])
@pytest.mark.parametrize("gate_first", [False, True])
def test_lemma_a2_gradients_are_path_sums(skips: bool, gate_first: bool) -> None:
    """x ↦ (x +) ρ(W x), where the gate is behind the weight, and x ↦ (x +) W ρ(x) of equation 2."""
    stream = numpy_generator(3, "nets")
    W = torch.tensor(stream.normal(size=(3, 3, 3)))
    x = torch.tensor(stream.normal(size=3)).requires_grad_()
    at, gates = x, []
    for each in W:
        field = at if gate_first else at @ each
        gates.append((field > 0).numpy())
        branch = torch.relu(field) @ each if gate_first else torch.relu(field)
        at = at + branch if skips else branch
    (gradient,) = torch.autograd.grad(at.sum(), x)
    found = [
        paths.path_sum(
            paths.paths_from(i, 3, 3, skips=skips, gate_first=gate_first), W.numpy(), np.array(gates)
        )
        for i in range(3)
    ]
    np.testing.assert_allclose(found, gradient.numpy(), atol=1e-13)
    assert np.abs(found).max() > 0.1


def test_path_sums_of_many_nets_are_those_of_each() -> None:
    A, _ = configurations(3, 2)
    found = paths.layered_paths(3, 2)
    nets = paths.sign_weights(2, 2, 0.5)
    assert nets.shape == (256, 2, 2, 2)
    assert len({net.tobytes() for net in nets}) == 256
    np.testing.assert_array_equal(
        paths.path_sum(found, nets, A), [paths.path_sum(found, net, A) for net in nets]
    )


def test_refusals() -> None:
    with pytest.raises(Refused, match=r"2\^27 sign patterns"):
        paths.sign_weights(3, 3, 1.0)
    with pytest.raises(Refused, match="start is 2"):
        paths.paths_from(2, 2, 2)
