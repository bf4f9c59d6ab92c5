"""The whole Hessian from a sweep a unit, against products with every column; where it must step aside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oracles.dense_hessian import dense_hessian
from skiplab import linear_algebra as la
from skiplab.architectures.fully_connected import HyperResidualNet, PlainNet, ResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.sweeps.forward_mode import ForwardMode
from skiplab.curvature.sweeps.recording import Unsupported
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

CE = nn.CrossEntropyLoss()
X = torch.randn(40, 7, generator=torch_generator("unit inputs"), dtype=torch.float64)
Y = torch.randint(3, (40,), generator=torch_generator("unit labels"))
SMALL, MIDDLE, LARGE = 1, 100_000, 1 << 30


def net(
    kind: type[Any], activation: str = "relu", dtype: torch.dtype = torch.float64, **more: Any
) -> nn.Module:
    draw = torch_generator("unit net")
    return kind(7, 4, 5, 3, generator=draw, init=Glorot(1.2), activation=activation, dtype=dtype, **more)


def whole(model: nn.Module, room: int, names: tuple[str, ...] | None = None, **more: Any) -> Tensor:
    subject = Subject.of(model, criterion=more.pop("criterion", CE))
    return ForwardMode(subject, (X, Y), names or tuple(subject.parameters), **more).matrix(room)


@pytest.mark.parametrize("room", [SMALL, MIDDLE, LARGE])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("kind", [PlainNet, ResidualNet, HyperResidualNet])
def test_it_is_the_dense_hessian(kind: type[Any], activation: str, room: int) -> None:
    model = net(kind, activation)
    names = tuple(name for name, _ in model.named_parameters())
    expected = dense_hessian(model, names, lambda model: CE(model(X), Y))
    found = whole(model, room)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    assert torch.equal(found, found.mT)


@pytest.mark.parametrize("room", [SMALL, LARGE])
@pytest.mark.parametrize(
    "names",
    [
        ("hidden.1.linear.weight",),
        ("output.bias", "hidden.0.linear.bias"),
        ("output.bias", "hidden.3.linear.weight", "hidden.0.linear.weight", "output.weight"),
    ],
)
def test_some_parameters_in_the_order_asked_for(names: tuple[str, ...], room: int) -> None:
    model = net(ResidualNet)
    expected = dense_hessian(model, names, lambda model: CE(model(X), Y))
    torch.testing.assert_close(whole(model, room, names), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "criterion",
    [
        F.cross_entropy,
        lambda output, target: F.mse_loss(output, F.one_hot(target, 3).to(output)),
        lambda output, target: output.gather(1, target[:, None]).mean(),
    ],
    ids=["cross-entropy", "squares", "linear"],
)
def test_any_loss_of_single_samples(criterion: Callable[[Tensor, Tensor], Tensor]) -> None:
    model = net(PlainNet, "tanh")
    names = tuple(name for name, _ in model.named_parameters())
    expected = dense_hessian(model, names, lambda model: criterion(model(X), Y))
    torch.testing.assert_close(whole(model, LARGE, criterion=criterion), expected, rtol=0, atol=1e-13)


def test_the_gauss_newton_matrix_leaves_out_the_networks_own_curvature() -> None:
    model = net(ResidualNet, "tanh")
    product = HessianProduct(model, (X, Y), criterion=CE, kind="gauss_newton")
    expected = la.dense_matrix(product, product.dimension, lead=(1,))[0]
    torch.testing.assert_close(whole(model, LARGE, gauss_newton=True), expected, rtol=0, atol=1e-13)
    assert float(torch.linalg.eigvalsh(expected)[0]) > -1e-12


def test_a_parameter_that_the_loss_does_not_meet_has_rows_of_zeros() -> None:
    model = net(PlainNet)
    model.spare = nn.Parameter(torch.ones(2, 3, dtype=torch.float64))
    names = tuple(name for name, _ in model.named_parameters())
    assert names[0] == "spare"
    found = whole(model, LARGE)
    assert not found[:6].any()
    torch.testing.assert_close(found[6:, 6:], whole(net(PlainNet), LARGE))


class Odd(nn.Module):
    """Linear layers that something else joins."""

    def __init__(self, way: str) -> None:
        super().__init__()
        draw = torch_generator("odd")
        self.way = way
        self.first = nn.Parameter(torch.randn(7, 7, generator=draw, dtype=torch.float64) / 3)
        self.second = nn.Parameter(torch.randn(3, 7, generator=draw, dtype=torch.float64))
        self.scale = nn.Parameter(torch.randn(7, generator=draw, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.first).tanh()
        if self.way == "tied":
            y = F.linear(y, self.first).tanh()
        elif self.way == "scaled":
            y = y * self.scale
        elif self.way == "mixed":
            y = y - y.mean(0)
        elif self.way == "product of units":
            y = y * y * y
        return F.linear(y, self.second)


@pytest.mark.parametrize("way", ["tied", "scaled", "mixed"])
def test_what_it_cannot_do_is_done_by_products(way: str) -> None:
    model = Odd(way)
    with pytest.raises(Unsupported):
        whole(model, LARGE)
    names = tuple(name for name, _ in model.named_parameters())
    expected = dense_hessian(model, names, lambda model: CE(model(X), Y))
    found = HessianProduct(model, (X, Y), criterion=CE).matrix()[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_products_of_units_are_within_its_reach() -> None:
    model = Odd("product of units")
    names = tuple(name for name, _ in model.named_parameters())
    expected = dense_hessian(model, names, lambda model: CE(model(X), Y))
    torch.testing.assert_close(whole(model, LARGE), expected, rtol=0, atol=1e-12)


def test_a_loss_that_mixes_samples_is_noticed() -> None:
    def criterion(output: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(output, target) + output.mean(0).square().sum()

    model = net(PlainNet, "tanh")
    names = tuple(name for name, _ in model.named_parameters())
    expected = dense_hessian(model, names, lambda model: criterion(model(X), Y))
    assert float((whole(model, LARGE, criterion=criterion) - expected).abs().max()) > 1e-3
    found = HessianProduct(model, (X, Y), criterion=criterion).matrix()[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def test_unequal_batches_and_sums_and_float32() -> None:
    batches = [(X[:25], Y[:25]), (X[25:], Y[25:])]
    model = net(ResidualNet)
    expected = HessianProduct(model, (X, Y), criterion=CE).matrix()
    found = HessianProduct(model, batches, criterion=CE).matrix()
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)
    total = HessianProduct(model, batches, criterion=nn.CrossEntropyLoss(reduction="sum")).matrix()
    torch.testing.assert_close(total, 40 * expected, rtol=0, atol=1e-11)
    single = HessianProduct(net(ResidualNet).float(), (X.float(), Y), criterion=CE).matrix()
    assert single.dtype == torch.float64
    torch.testing.assert_close(single, expected, rtol=0, atol=1e-5)


def test_an_ensemble_has_its_members_matrices() -> None:
    models = [net(PlainNet), net(PlainNet, "relu").double()]
    with torch.no_grad():
        models[1].output.weight.mul_(2)
    ensemble = Ensemble.of(models)
    found = HessianProduct(ensemble, (X, Y), criterion=CE).matrix()
    order = HessianProduct(ensemble, (X, Y), criterion=CE).names
    for matrix, model in zip(found, models, strict=True):
        alone = HessianProduct(model, (X, Y), criterion=CE, layers=order).matrix()[0]
        torch.testing.assert_close(matrix, alone, rtol=0, atol=1e-13)
