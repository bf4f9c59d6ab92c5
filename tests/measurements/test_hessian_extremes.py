"""Extreme eigenvalues and traces of the loss Hessian against its exact spectrum."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import skiplab as sl
from skiplab import linear_algebra as la
from skiplab.architectures.resnet import ResNet
from skiplab.checks import Refused
from skiplab.linear_algebra import memory
from skiplab.randomness import torch_generator

LOSS = nn.CrossEntropyLoss()


@pytest.fixture(scope="module")
def network() -> nn.Module:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return nn.Sequential(
            nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 8), nn.Tanh(), nn.Linear(8, 3)
        ).double()


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    stream = torch_generator(0, "batch")
    return torch.randn(64, 6, generator=stream, dtype=torch.float64), torch.arange(64) % 3


@pytest.fixture(scope="module")
def exact(network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """All eigenvalues, ascending."""
    found = sl.hessian_spectrum(network, batch, criterion=LOSS).eigenvalues
    assert found is not None
    return found[0].sort().values


@pytest.mark.parametrize("which", ["both", "largest", "smallest", "magnitude"])
def test_the_ends_of_the_spectrum_are_the_exact_ones(
    network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], exact: torch.Tensor, which: str
) -> None:
    found = sl.hessian_extremes(network, batch, criterion=LOSS, k=3, which=which, tolerance=1e-9)
    ends = {
        "largest": exact.flip(0)[:3],
        "smallest": exact[:3],
        "both": torch.cat([exact.flip(0)[:3], exact[:3]]),
        "magnitude": exact[exact.abs().argsort(descending=True)][:3],
    }
    torch.testing.assert_close(found.values[0], ends[which], rtol=0, atol=1e-7)
    assert bool(found.converged.all())
    assert len(found.places) == found.values.shape[1] == len(set(found.places))


def test_starting_from_the_gradient_too_takes_fewer_products_of_resnets() -> None:
    images = torch.randn(32, 3, 8, 8, generator=torch_generator("images")), torch.arange(32) % 10
    ours = random = 0
    for seed in range(6):
        network = ResNet(1, generator=torch_generator(seed), outputs=10)
        found = sl.hessian_extremes(network, images, criterion=LOSS, which="largest", mode="train")
        product = sl.HessianProduct(network, images, criterion=LOSS, mode="train")
        draw, how = torch_generator(seed), {"tolerance": 1e-3, "block": 1, "lead": (1,)}
        other = la.extreme_eigenvalues(product, product.dimension, 1, draw, dtype=product.dtype, **how)
        assert bool(((found.values - other.values).abs() <= found.residuals + other.residuals).all())
        ours, random = ours + found.steps, random + other.steps
    assert ours < 0.9 * random


def test_the_gradient_may_be_zero(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    network = nn.Linear(6, 1, bias=False).double()
    inputs = batch[0]
    with torch.no_grad():
        exact = network(inputs)
    found = sl.hessian_extremes(network, (inputs, exact), criterion=nn.MSELoss(), which="largest")
    top = torch.linalg.eigvalsh(2 * inputs.mT @ inputs / len(inputs))[-1]
    torch.testing.assert_close(found.values[0, 0], top, rtol=1e-6, atol=0)


def test_intervals_hold_an_eigenvalue_even_where_steps_end_early(
    network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], exact: torch.Tensor
) -> None:
    found = sl.hessian_extremes(
        network, batch, criterion=LOSS, k=4, which="both", max_steps=4, tolerance=1e-9
    )
    assert not bool(found.converged.any())
    assert "unresolved" in repr(found)
    assert repr(found).startswith("Hessian extremes of 1 network, 185 parameters, 64 samples, 4 steps")
    (estimate,) = found.estimates.values()
    for low, high in zip(estimate.low[0], estimate.high[0], strict=True):
        assert bool(((exact >= low) & (exact <= high)).any())


def test_an_eigenvalue_that_is_settled_is_not_called_open_for_another_that_is_not(
    network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], exact: torch.Tensor
) -> None:
    found = sl.hessian_extremes(network, batch, criterion=LOSS, k=6, which="largest", max_steps=9)
    assert bool(found.settled[0, 0])
    assert not bool(found.converged)
    (estimate,) = found.estimates.values()
    assert estimate.settled[0].tolist() == found.settled[0].tolist()
    assert "unresolved" not in repr(estimate[0, 0])
    assert found.values[0, 0].item() == pytest.approx(exact[-1].item(), rel=1e-3)


def test_the_top_eigenvalue_takes_no_more_products_than_a_power_iteration_as_sure(
    network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    """As PyHessian does it (Yao et al., 2020), until its residual is as small as the one that is proved here."""
    tolerance, product = 1e-3, sl.HessianProduct(network, batch, criterion=LOSS)
    vector = torch.randn(1, 1, product.dimension, generator=torch_generator(0, "power"), dtype=torch.float64)
    products, residual, top = 0, 1.0, 0.0
    while residual > tolerance * abs(top):
        vector = vector / vector.norm()
        image = product(vector)
        products, top = products + 1, (image * vector).sum().item()
        residual, vector = (image - top * vector).norm().item(), image
    found = sl.hessian_extremes(network, batch, criterion=LOSS, which="magnitude", tolerance=tolerance)
    assert found.values.item() == pytest.approx(top, rel=tolerance)
    assert found.steps <= products  # a step is a product where one eigenvalue is asked for


def test_the_text_names_the_matrix(network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    calls = {"extremes": sl.hessian_extremes, "trace": sl.hessian_trace, "product": sl.hessian_product}
    for word, call in {**calls, "spectrum": sl.hessian_spectrum}.items():
        for kind, name in (("hessian", "Hessian"), ("gauss_newton", "Gauss–Newton"), ("fisher", "Fisher")):
            found = call(network, batch, criterion=LOSS, kind=kind)
            assert repr(found).startswith(f"{name} {word} of 1 network, 185 parameters, 64 samples")


def test_the_trace_is_the_sum_of_eigenvalues(
    network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor], exact: torch.Tensor
) -> None:
    whole = sl.hessian_trace(network, batch, criterion=LOSS, products=1000)
    assert float(whole.value) == pytest.approx(float(exact.sum()), rel=1e-9)
    assert float(whole.stderr) == 0
    found = sl.hessian_trace(network, batch, criterion=LOSS, products=40)
    assert abs(float(found.value - exact.sum())) < 4 * float(found.stderr)
    assert float(found.stderr) < 0.1 * float(exact.abs().sum())
    low, high = (float(each) for each in (found.estimates["trace"].low, found.estimates["trace"].high))
    assert low < float(found.value) < high


def test_members_of_an_ensemble_have_their_own(batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        networks = [nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3)).double() for _ in range(3)]
    together = sl.hessian_extremes(sl.Ensemble.of(networks), batch, criterion=LOSS, tolerance=1e-9)
    traces = sl.hessian_trace(sl.Ensemble.of(networks), batch, criterion=LOSS, products=500)
    for number, network in enumerate(networks):
        alone = sl.hessian_spectrum(network, batch, criterion=LOSS).eigenvalues
        assert alone is not None
        ends = torch.stack([alone.max(), alone.min()])
        torch.testing.assert_close(together.values[number], ends, rtol=0, atol=1e-7)
        assert float(traces.value[number]) == pytest.approx(float(alone.sum()), rel=1e-9)
    assert len(together.frame()) == 6


def test_what_cannot_be_is_refused(network: nn.Module, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
    with pytest.raises(Refused, match="which 'top' is unknown"):
        sl.hessian_extremes(network, batch, criterion=LOSS, which="top")
    with pytest.raises(Refused, match="k is 999, but there are 185 eigenvalues; ask for fewer"):
        sl.hessian_extremes(network, batch, criterion=LOSS, k=999)
    with pytest.raises(Refused, match="products is 2, but an error bar needs at least 4"):
        sl.hessian_trace(network, batch, criterion=LOSS, products=2)


def test_steps_and_products_end_where_memory_does(
    network: nn.Module,
    batch: tuple[torch.Tensor, torch.Tensor],
    exact: torch.Tensor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(room: int) -> None:
        monkeypatch.setattr(memory, "available_bytes", lambda device: 2 * room)  # of which half is used

    leave(2 * 8 * len(exact) * (5 + 5))  # five steps of two vectors, and five such blocks in work
    short = sl.hessian_extremes(network, batch, criterion=LOSS, tolerance=1e-9, k=2)
    assert short.steps == 5
    assert not bool(short.converged)
    assert "at most 5 steps instead of 100, since more do not fit" in repr(short)
    away = (short.values[0][:, None] - exact).abs().amin(1)
    assert bool((away <= short.residuals[0] + 1e-9).all())
    with pytest.raises(
        Refused, match=r"max_steps is 9, which takes .* give max_steps=5, or name fewer layers"
    ):
        sl.hessian_extremes(network, batch, criterion=LOSS, max_steps=9, k=2)
    assert sl.hessian_extremes(network, batch, criterion=LOSS, max_steps=5, k=2).limited == ""
    leave(2 * 8 * len(exact) * 5)
    with pytest.raises(
        Refused, match=r"products is 20, which takes .* give products=5, or name fewer layers"
    ):
        sl.hessian_trace(network, batch, criterion=LOSS, products=20)
    assert sl.hessian_trace(network, batch, criterion=LOSS, products=5).products == 4
    fewer = sl.hessian_trace(network, batch, criterion=LOSS)
    assert fewer.products == 4
    assert "at most 5 products instead of 20, since more do not fit" in repr(fewer)
    leave(8 * len(exact) * 5)
    with pytest.raises(Refused, match=r"4 products take .*, and .* may be used; name fewer layers in layers"):
        sl.hessian_trace(network, batch, criterion=LOSS)
