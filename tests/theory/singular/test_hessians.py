from __future__ import annotations

import pytest
import torch
from torch import Tensor

from oracles.dense_hessian import dense_hessian
from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.theory.singular.hessians import (
    LINEAR_NETS,
    POINTS,
    SingularPoint,
    block_zeros,
    gauss_newton_zeros,
    matrices,
    multilayer_overlap,
    other_singular_ratio,
    reduced_factors,
    reduced_hessian,
    reduced_point,
    three_layer_point,
)

STEPS = torch.linspace(-2, 2, 5, dtype=torch.float64)
networks = pytest.mark.parametrize("network", ["plain", "residual"])


def hessian(point: SingularPoint) -> Tensor:
    """Autograd's own Hessian, entry by entry."""

    def loss(model):
        return (point.targets - model(point.inputs)).square().sum() / 2

    return dense_hessian(point.net, point.names, loss)


def zeros(matrix: Tensor) -> int:
    values = torch.linalg.eigvalsh(matrix).abs()
    return int((values <= 1e-12 * values.max()).sum())


@pytest.mark.parametrize("activation", ["tanh", "relu"])
def test_an_overlap_is_flat_but_pushes(activation: str) -> None:
    point = multilayer_overlap(activation, (4, 4, 3), 60, torch_generator(0, activation))
    H = hessian(point)
    assert point.directions.shape == (4, len(H))
    assert float((point.directions @ H @ point.directions.T).diagonal().abs().max()) < 1e-13 * float(H.norm())
    assert float((point.directions @ H).norm(dim=1).min()) > 1e-4 * float(H.norm())
    for direction in point.directions:
        losses = point.loss_along(direction, STEPS)
        torch.testing.assert_close(losses, losses[2].expand(5), rtol=1e-14, atol=0)


@pytest.mark.parametrize(("inputs", "gained"), [(5, 0), (4, 0), (3, 1), (2, 2)])
def test_the_hessian_gains_outgoing_less_incoming_zeros(inputs: int, gained: int) -> None:
    sizes = (inputs, 4, 3)
    at, beside = (
        multilayer_overlap("tanh", sizes, 100, torch_generator(1), beside=off) for off in (False, True)
    )
    assert zeros(hessian(at)) - zeros(hessian(beside)) == gained
    assert float(beside.loss_along(beside.directions[0], STEPS).std()) > 1e-3


def test_at_an_optimum_the_directions_are_null() -> None:
    point = multilayer_overlap("tanh", (4, 4, 3), 60, torch_generator(2)).at_an_optimum()
    H = hessian(point)
    assert float(point.loss_along(point.directions[0], STEPS).abs().max()) < 1e-25
    assert float((point.directions @ H).abs().max()) < 1e-13 * float(H.norm())


@networks
@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize(("hidden", "modes"), [(2, 4), (3, 3), (4, 2)])
def test_zeros_of_a_linear_network_follow_from_the_ranks(
    network: str, point: str, hidden: int, modes: int
) -> None:
    """At an optimum the Hessian is the Gauss–Newton matrix."""
    at = three_layer_point(network, hidden, modes, point, torch_generator(3, hidden)).at_an_optimum()
    A, B = matrices(at.net)
    rank_a, rank_b = (int(torch.linalg.matrix_rank(each)) for each in (A, B))
    H, size = hessian(at), hidden * modes
    assert zeros(H) == gauss_newton_zeros(hidden, modes, rank_a, rank_b)
    assert zeros(H[:size, :size]) == block_zeros(hidden, modes, rank_b)
    assert zeros(H[size:, size:]) == block_zeros(hidden, modes, rank_a)
    lost = {"a overlaps": (1, 0), "b overlaps": (0, 1), "both overlap": (1, 1), "a is zero": (1, 0)}
    lost = lost if network == "plain" else {"b + u overlaps": (0, 1)}
    less_a, less_b = lost.get(point, (0, 0))
    assert (rank_a, rank_b) == (min(hidden - less_a, modes), min(hidden - less_b, modes))


@pytest.mark.parametrize("point", POINTS[1:5])
def test_plain_overlaps_are_flat_and_residual_ones_are_not(point: str) -> None:
    plain, residual = (
        three_layer_point(name, 3, 3, point, torch_generator(4)) for name in ("plain", "residual")
    )
    for direction in plain.directions:
        losses = plain.loss_along(direction, STEPS)
        torch.testing.assert_close(losses, losses[2].expand(5), rtol=1e-13, atol=0)
        assert float(residual.loss_along(direction, STEPS).std()) > 1e-3
    assert zeros(hessian(plain)) == zeros(hessian(residual)) == 0


def test_matrices_give_the_network_and_names_its_order() -> None:
    for name, kind in LINEAR_NETS.items():
        net = kind((3, 4, 3), generator=torch_generator(5, name), dtype=torch.float64)
        A, B = matrices(net)
        torch.testing.assert_close(B @ A, net.matrix().detach())


@pytest.mark.parametrize("network", LINEAR_NETS)
@pytest.mark.parametrize("depth", [2, 4])
def test_the_reduced_hessian_is_singular_at_two_values_of_u(network: str, depth: int) -> None:
    strengths = 0.5 + torch.rand(depth, generator=torch_generator(6), dtype=torch.float64)
    strengths[1] = strengths[0]
    factors = reduced_factors(network, strengths)
    for ratio, gained in ((0.5, 0), (1.0, depth - 1), (other_singular_ratio(depth), 1), (-2.0, 0)):
        point = reduced_point(network, strengths, ratio)
        H = hessian(point)
        expected = reduced_hessian(factors, float(point.targets))
        torch.testing.assert_close(H, expected, rtol=0, atol=1e-13 * float(expected.abs().max()))
        assert zeros(H) == gained


def test_where_two_strengths_agree_their_difference_is_an_eigenvector() -> None:
    strengths = torch.tensor([0.7, 0.7, 1.2], dtype=torch.float64)
    point = reduced_point("residual", strengths, 0.5)
    u = float(reduced_factors("residual", strengths).prod())
    s = 2 * u
    direction = point.directions[0]
    expected = u * (s - u) / 1.7**2 * direction
    torch.testing.assert_close(hessian(point) @ direction, expected, rtol=1e-12, atol=1e-12)


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(Refused, match=r"point 'a overlap' is unknown.*Did you mean a overlaps"):
        three_layer_point("plain", 3, 3, "a overlap", torch_generator(0))
    with pytest.raises(Refused, match="network 'hyper' is unknown"):
        three_layer_point("hyper", 3, 3, "generic", torch_generator(0))
    with pytest.raises(Refused, match="samples is 10, but must be at least 50"):
        multilayer_overlap("relu", (3, 3, 3), 10, torch_generator(0))
    with pytest.raises(Refused, match="hidden is 1, but must be at least 2"):
        three_layer_point("plain", 1, 3, "generic", torch_generator(0))
