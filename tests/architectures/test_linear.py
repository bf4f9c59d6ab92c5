from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.linear import (
    DenseResidualLinearNet,
    HyperResidualLinearNet,
    PlainLinearNet,
    ResidualLinearNet,
)
from skiplab.checks import Refused
from skiplab.randomness import torch_generator


def build(kind: type, *sizes: int) -> Any:
    return kind(sizes, generator=torch_generator("linear"), dtype=torch.float64)


@pytest.mark.parametrize(
    ("kind", "multiple"),
    [
        (PlainLinearNet, lambda ell: 0),
        (ResidualLinearNet, lambda ell: 1),
        (HyperResidualLinearNet, lambda ell: ell),
    ],
)
@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (4, 2, 5, 3)])
def test_the_map_is_the_product_of_equations_5_to_7(
    kind: type, multiple: Any, sizes: tuple[int, ...]
) -> None:
    net = build(kind, *sizes)
    product = torch.eye(sizes[0], dtype=torch.float64)
    for ell, layer in enumerate(net.layers, start=1):
        weight = layer.linear.weight
        product = (weight + multiple(ell) * torch.eye(*weight.shape, dtype=torch.float64)) @ product
    torch.testing.assert_close(net.matrix(), product)
    x = standard_normal((5, sizes[0]), torch_generator("x"))
    torch.testing.assert_close(net(x), x @ product.T)


def test_dense_skips_sum_all_earlier_layers() -> None:
    net = build(DenseResidualLinearNet, 3, 3, 3, 3, 3)
    xs = [standard_normal((5, 3), torch_generator("x"))]
    for layer in net.layers:
        xs.append(xs[-1] @ layer.linear.weight.T + sum(xs))
    torch.testing.assert_close(net(xs[0]), xs[-1])


@pytest.mark.parametrize(
    ("kind", "saddle"),
    [
        (PlainLinearNet, (0.0, 0.0)),
        (ResidualLinearNet, (-1.0, -1.0)),
        (HyperResidualLinearNet, (-1.0, -2.0)),
        (DenseResidualLinearNet, (-1.0, -1.0)),
    ],
)
def test_three_layer_saddles_are_where_the_equations_put_them(
    kind: type, saddle: tuple[float, float]
) -> None:
    net = build(kind, 1, 1, 1)

    def loss(weights: Tensor) -> Tensor:
        named = {f"layers.{k}.linear.weight": weights[k].reshape(1, 1) for k in range(2)}
        output = torch.func.functional_call(net, named, (torch.ones(1, 1, dtype=torch.float64),))
        return (2.0 - output).square().sum() / 2

    at = torch.tensor(saddle, dtype=torch.float64)
    assert not torch.func.grad(loss)(at).any()
    curvatures = torch.linalg.eigvalsh(torch.func.jacrev(torch.func.jacrev(loss))(at))
    assert curvatures[0] < 0 < curvatures[1]


def test_there_are_no_biases() -> None:
    assert [tuple(p.shape) for p in build(ResidualLinearNet, 4, 2, 5).parameters()] == [(2, 4), (5, 2)]


@pytest.mark.parametrize(
    ("kind", "sizes", "sentence"),
    [
        (PlainLinearNet, (3,), r"sizes are \(3,\), but need at least an input and an output size"),
        (PlainLinearNet, (3, 0), "size is 0, but must be a whole number of at least 1"),
        (DenseResidualLinearNet, (3, 2, 3), r"sizes are \(3, 2, 3\), but .* make every size 3"),
    ],
)
def test_wrong_sizes_are_refused(kind: type, sizes: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        build(kind, *sizes)
