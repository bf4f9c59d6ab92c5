from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.skip_matrices import (
    Constant,
    FixedSkip,
    Folded,
    Identity,
    Orthogonal,
    Shared,
    SkipMatrix,
    Tau,
    correlation_factor,
    orthogonal,
    skip_connections,
)
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

EPS = torch.finfo(torch.float64).eps


def eye(n: int) -> Tensor:
    return torch.eye(n, dtype=torch.float64)


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-13)


def test_identity_is_the_identity() -> None:
    assert torch.equal(Identity().matrix(5, torch_generator(0)), eye(5))


def test_orthogonal_matrices_are_orthogonal_and_dense() -> None:
    q = Orthogonal().matrix(128, torch_generator(0))
    close(q.T @ q, eye(128))
    assert q.abs().min() > 0


def test_orthogonal_matrices_are_uniform() -> None:
    # Without the sign correction LAPACK's first entry is never positive, with mean −2/π at n = 2.
    generator = torch_generator("haar")
    corner = torch.stack([orthogonal(2, generator)[0, 0] for _ in range(2000)])
    assert abs(corner.mean()) < 4 * math.sqrt(0.5 / 2000)
    assert abs((corner**2).mean() - 0.5) < 4 * math.sqrt(0.125 / 2000)


@pytest.mark.parametrize("distinct", [128, 64, 32, 8, 1])
def test_folding_leaves_so_many_distinct_columns(distinct: int) -> None:
    q = Folded(distinct).matrix(128, torch_generator(1))
    first = q[:, :distinct]
    close(first.T @ first, eye(distinct))
    assert torch.equal(q, torch.cat([first] * (128 // distinct), dim=1))
    # It is a folding of the very orthogonal matrix that the seed names.
    assert torch.equal(first, orthogonal(128, torch_generator(1))[:, :distinct])
    spectrum = torch.linalg.svdvals(q)
    close(spectrum[:distinct], torch.full((distinct,), math.sqrt(128 / distinct), dtype=torch.float64))
    close(spectrum[distinct:], torch.zeros(128 - distinct, dtype=torch.float64))


def test_folding_rows_repeats_the_vectors_into_units() -> None:
    by_rows = Folded(4, repeats="rows").matrix(16, torch_generator(2))
    assert torch.equal(by_rows, Folded(4).matrix(16, torch_generator(2)).T)
    x = torch.arange(16, dtype=torch.float64)
    into = by_rows @ x
    assert torch.equal(into[:4], into[4:8])


@pytest.mark.parametrize(
    ("n", "distinct", "choices"), [(128, 3, "128, 64, 32, 16, 8, 4, 2, 1"), (96, 1, "96, 48, 24, 12, 6, 3")]
)
def test_folding_that_halving_cannot_reach_is_refused(n: int, distinct: int, choices: str) -> None:
    with pytest.raises(
        Refused, match=f"{n} vectors cannot be folded .* to {distinct} .* among {choices}, or a"
    ):
        Folded(distinct).matrix(n, torch_generator(0))


def test_an_unknown_way_of_repeating_is_refused() -> None:
    with pytest.raises(Refused, match=r"repeats 'row' is unknown; .* Did you mean rows\?"):
        Folded(4, repeats="row")


def test_tau_of_zero_is_orthogonal() -> None:
    sigma = Tau(0.0).matrix(64, torch_generator(3))
    close(sigma.T @ sigma, eye(64))


@pytest.mark.parametrize("tau", [0.0, 0.01, 0.05, 0.1, 0.2, 0.25])
def test_tau_keeps_eigenvalues_on_the_unit_circle(tau: float) -> None:
    t = correlation_factor(128, tau, torch_generator(4))
    sigma = Tau(tau).matrix(128, torch_generator(4))
    off = (torch.linalg.eigvals(sigma).abs() - 1).abs().max()
    assert off <= 128 * EPS * torch.linalg.cond(t) ** 2
    assert off < 1e-4


def test_tau_correlates_eigenvectors_as_note_4_says() -> None:
    t = correlation_factor(32, 0.1, torch_generator(5))
    r = t @ t.T
    close(r.diagonal(), torch.ones(32, dtype=torch.float64))
    assert torch.equal(t, t.tril())
    # R has S's shape up to the diagonal D: D^½ R D^½ has eigenvalues exp(−τ(i−1)) for the S that was drawn.
    v = orthogonal(32, torch_generator(5))
    spectrum = torch.exp(-0.1 * torch.arange(32, dtype=torch.float64))
    deviations = (v * spectrum @ v.T).diagonal().sqrt()
    s = r * torch.outer(deviations, deviations)
    close(torch.linalg.eigvalsh(s).flip(0), spectrum)
    # Σ T = T O with O orthogonal.
    o = torch.linalg.solve(t, Tau(0.1).matrix(32, torch_generator(5)) @ t)
    torch.testing.assert_close(o.T @ o, eye(32), rtol=0, atol=1e-11)


@pytest.mark.parametrize(("tau", "norm"), [(0.01, 1.6), (0.05, 13), (0.1, 222), (0.2, 1e5)])
def test_tau_norms_grow_as_measured(tau: float, norm: float) -> None:
    norms = [torch.linalg.matrix_norm(Tau(tau).matrix(128, torch_generator(seed)), 2) for seed in range(3)]
    assert norm / 1.6 < torch.stack(norms).median() < norm * 1.6


def test_a_tau_beyond_cholesky_is_refused_with_the_largest_sensible_one() -> None:
    with pytest.raises(
        Refused, match=r"tau = 0.4 .* 128 eigenvectors singular in float64; choose .* most 0.25"
    ):
        Tau(0.4).matrix(128, torch_generator(0))


@pytest.mark.parametrize("wrong", [-0.1, math.nan, math.inf])
def test_a_senseless_tau_is_refused(wrong: float) -> None:
    with pytest.raises(Refused, match=f"tau is {wrong}, but must be a finite number of at least 0"):
        Tau(wrong).matrix(8, torch_generator(0))


def test_the_identity_costs_neither_buffer_nor_product() -> None:
    x = torch.ones(2, 4)
    for connection in skip_connections(Identity(), 3, 4, torch_generator(0), torch.float32):
        assert isinstance(connection, nn.Identity)
        assert not connection.state_dict()
        assert connection(x) is x


@pytest.mark.parametrize("kind", [Orthogonal(), Folded(2), Tau(0.1)])
def test_layers_draw_their_own_matrices_into_buffers(kind: SkipMatrix) -> None:
    one, two = skip_connections(kind, 2, 8, torch_generator(6), torch.float32)
    assert isinstance(one, FixedSkip)
    assert list(one.state_dict()) == ["matrix"]
    assert not list(one.parameters())
    assert one.matrix.dtype == torch.float32
    assert not torch.allclose(one.matrix, two.state_dict()["matrix"])
    assert one.to(torch.float64).matrix.dtype == torch.float64


def test_a_shared_kind_is_drawn_once_for_all_layers() -> None:
    one, two = skip_connections(Shared(Tau(0.1)), 2, 8, torch_generator(6), torch.float64)
    assert torch.equal(one.matrix, Tau(0.1).matrix(8, torch_generator(6)))
    assert torch.equal(one.matrix, two.matrix)
    assert one.matrix.data_ptr() != two.matrix.data_ptr()
    (identity,) = skip_connections(Shared(Identity()), 1, 8, torch_generator(6), torch.float64)
    assert isinstance(identity, nn.Identity)


def test_powers_of_a_shared_tau_matrix_stay_bounded_and_products_of_drawn_ones_do_not() -> None:
    generator = torch_generator("powers")
    t, o = correlation_factor(64, 0.1, generator), orthogonal(64, generator)
    shared = Tau(0.1).matrix(64, torch_generator("powers"))
    power = torch.linalg.matrix_power(shared, 29)
    expected = t @ torch.linalg.matrix_power(o, 29) @ torch.linalg.inv(t)
    torch.testing.assert_close(power, expected, rtol=1e-8, atol=1e-8)
    assert torch.linalg.matrix_norm(power, 2) <= torch.linalg.cond(t)
    drawn = torch.linalg.multi_dot([Tau(0.1).matrix(64, generator) for _ in range(29)])
    assert torch.linalg.matrix_norm(drawn, 2) > 1e6 * torch.linalg.cond(t)


def test_q_multiplies_columns_of_activities() -> None:
    q = Orthogonal().matrix(4, torch_generator(7))
    x = torch.arange(8, dtype=torch.float64).reshape(2, 4)
    close(FixedSkip(q)(x), torch.stack([q @ x[0], q @ x[1]]))


def test_a_given_tensor_serves_all_layers_or_one_each() -> None:
    each = torch.arange(18, dtype=torch.float64).reshape(2, 3, 3)
    shared = skip_connections(each[0], 2, 3, torch_generator(0), torch.float64)
    assert [torch.equal(c.state_dict()["matrix"], each[0]) for c in shared] == [True, True]
    single = skip_connections(each, 2, 3, torch_generator(0), torch.float64)
    assert [torch.equal(c.state_dict()["matrix"], m) for c, m in zip(single, each, strict=True)] == [
        True,
        True,
    ]
    each.zero_()
    assert single[1].state_dict()["matrix"].any()


def test_a_tensor_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(
        Refused, match=r"shape \(3, 4\), but must have \(4, 4\) .* or \(5, 4, 4\) for one a layer"
    ):
        skip_connections(torch.zeros(3, 4), 5, 4, torch_generator(0), torch.float32)


def test_something_that_is_no_skip_is_refused() -> None:
    with pytest.raises(
        Refused, match=r"skip is 'identity', but must be a tensor or a kind such as Identity\(\)"
    ):
        skip_connections("identity", 2, 4, torch_generator(0), torch.float32)  # type: ignore[arg-type]


def test_a_constant_matrix_gives_every_unit_the_same_skip() -> None:
    q = Constant().matrix(8, torch_generator(0))
    order = torch.randperm(8, generator=torch_generator(1))
    torch.testing.assert_close(q[order][:, order], q)
    assert len(torch.unique(q, dim=0)) == 1
    assert torch.linalg.eigvals(q).abs().max().item() == pytest.approx(1)
