"""Layer cushions against matrices built by hand, in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.initialisers import KWI
from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResMLP, SimplifiedResNet
from skiplab.architectures.transfer import id_entries, to_plain
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.noise_stability import layer_cushions
from skiplab.randomness import torch_generator

SIZES: dict[str, Any] = {"filters": (4, 8), "outputs": 3, "init": KWI(), "dtype": torch.float64}
X = torch.randn(7, 3, 8, 8, generator=torch_generator("images"), dtype=torch.float64)


def network(seed: int = 0) -> SimplifiedPlnNet:
    net = SimplifiedPlnNet(2, generator=torch_generator(seed), **SIZES)
    for parameter in net.parameters():  # biases must not matter, so there are some
        if parameter.ndim == 1:
            parameter.data.normal_(generator=torch_generator(seed, "biases"))
    return net


def operator_of(conv: nn.Conv2d, side: int) -> Tensor:
    """A convolution without bias as a matrix, column by column."""
    units = torch.eye(conv.in_channels * side**2, dtype=torch.float64).view(-1, conv.in_channels, side, side)
    with torch.no_grad():
        return (conv(units) - conv(torch.zeros_like(units))).flatten(1).T


@pytest.mark.parametrize("block", [1, 2])
def test_they_are_the_papers_ratio(block: int) -> None:
    """Block 2 strides and doubles the channels."""
    net = network()
    name = f"blocks.{block}.conv"
    found = layer_cushions(net, X, layers=[name])
    with torch.no_grad():
        x = net.stem(X)
        for each in net.blocks[:block]:
            x = each(x)
        conv = net.blocks[block].conv
        A = operator_of(conv, x.shape[-1])
        x = x.flatten(1)
        expected = (x @ A.T).norm(dim=1) / conv.weight.norm() / x.norm(dim=1)
    torch.testing.assert_close(found.cushions[0, :, 0], expected, rtol=1e-10, atol=0)


def test_all_linear_and_convolutional_layers_are_measured_in_batches_of_any_size() -> None:
    net = network()
    whole = layer_cushions(net, X)
    assert whole.layers == ("stem.0", *(f"blocks.{k}.conv" for k in range(4)), "output")
    parts = layer_cushions(net, [(X[:3],), (X[3:],)])
    torch.testing.assert_close(parts.cushions, whole.cushions)
    table = whole.frame()
    assert {"median", "mean", "least"} < set(table.columns)
    least = table[table["layer"] == "output"]["least"].item()
    assert least == whole.cushions[0, :, -1].min().item()


def test_identities_stay_in_the_product_and_leave_the_norm() -> None:
    residual = SimplifiedResNet(2, generator=torch_generator(0), **SIZES)
    plain = to_plain(residual)
    found = layer_cushions(plain, X, layers=["blocks.1.conv"], identities=id_entries(plain))
    with torch.no_grad():
        x = residual.blocks[0](residual.stem(X))
        kernel = residual.blocks[1].conv.weight
        image = (residual.blocks[1].conv(x) + x).flatten(1).norm(dim=1) / x.flatten(1).norm(dim=1)
    torch.testing.assert_close(found.without_identities[0, :, 0], image / kernel.norm(), rtol=1e-12, atol=0)
    kept = (kernel + id_entries(plain)["blocks.1.conv.weight"]).norm()
    torch.testing.assert_close(found.cushions[0, :, 0], image / kept, rtol=1e-12, atol=0)
    assert next(iter(found.estimates)) == "median, norm without identities"
    # The stem and the output have no identity: both norms are the same.
    whole = layer_cushions(plain, X, identities=id_entries(plain))
    assert torch.equal(whole.norms[:, [0, -1]], whole.bare_norms[:, [0, -1]])


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_members_are_measured_as_by_themselves(backend: str) -> None:
    nets = [network(seed) for seed in range(3)]
    found = layer_cushions(Ensemble.of(nets, backend=backend), X)
    alone = torch.cat([layer_cushions(net, X).cushions for net in nets])
    torch.testing.assert_close(found.cushions, alone, rtol=1e-12, atol=0)


def test_random_weights_have_the_yardstick() -> None:
    layer = nn.Linear(400, 300, dtype=torch.float64)
    layer.weight.data.normal_(generator=torch_generator("weights"))
    x = torch.randn(20, 400, generator=torch_generator("rows"), dtype=torch.float64)
    found = layer_cushions(nn.Sequential(layer), x)
    torch.testing.assert_close(
        found.cushions.mean(), torch.tensor(1 / 20, dtype=torch.float64), rtol=0.02, atol=0
    )
    assert "random weights have 0.05, by their" in repr(found)


@pytest.mark.parametrize(("stride", "groups"), [(1, 1), (2, 1), (1, 4)])
def test_random_convolutions_have_the_yardstick_by_channels_and_strides(stride: int, groups: int) -> None:
    layer = nn.Conv2d(32, 64, 3, stride=stride, groups=groups, dtype=torch.float64)
    layer.weight.data.normal_(generator=torch_generator("weights"))
    x = torch.randn(3, 32, 40, 40, generator=torch_generator("images"), dtype=torch.float64)
    found = layer_cushions(nn.Sequential(layer), x)
    assert found.random == pytest.approx((1 / (stride * 32**0.5),))
    # Without padding the borders count less often, by a twentieth at each side.
    torch.testing.assert_close(found.cushions[0, :, 0].tolist(), list(found.random) * 3, rtol=0.06, atol=0)


def test_dead_samples_and_diverged_members_have_none() -> None:
    net = SimplifiedResMLP(3, (4, 4), 2, generator=torch_generator(0), dtype=torch.float64)
    x = torch.randn(5, 3, generator=torch_generator("rows"), dtype=torch.float64)
    x[2] = 0
    found = layer_cushions(net, x, layers=["stem.linear"])
    assert found.cushions[0, :, 0].isnan().tolist() == [False, False, True, False, False]
    broken = SimplifiedResMLP(3, (4, 4), 2, generator=torch_generator(1), dtype=torch.float64)
    broken.stem.linear.weight.data.fill_(torch.inf)
    pair = layer_cushions(Ensemble.of([net, broken]), x[:2])
    assert pair.cushions[0].isfinite().all()
    assert not pair.cushions[1].isfinite().any()
    with pytest.raises(Refused, match=r"product of layer 'stem.linear' holds .*, not a finite number"):
        layer_cushions(broken, x[:2])


def test_wrong_calls_are_refused() -> None:
    net = network()
    with pytest.raises(
        Refused, match=r"layer 'blocks.0' is a SimplifiedPlainBlock without units; name 'blocks.0.c"
    ):
        layer_cushions(net, X, layers=["blocks.0"])
    with pytest.raises(
        Refused, match=r"identities has 'blocks.9.conv.weight' of shape \(1, 1\), but no layer"
    ):
        layer_cushions(net, X, identities={"blocks.9.conv.weight": torch.zeros(1, 1)})
    with pytest.raises(Refused, match=r"no identities were given; pass identities=… when you measure"):
        layer_cushions(net, X).without_identities  # noqa: B018
    with pytest.raises(Refused, match="mode 'training' is unknown; choose one of eval, batch, train"):
        layer_cushions(net, X, mode="training")
