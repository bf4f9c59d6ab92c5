"""Interlayer cushions against dense Jacobians, in float64, in every mode of batch normalisation."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.resnet import ResNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.noise_stability import interlayer_cushions
from skiplab.randomness import torch_generator

X = torch.randn(3, 3, 4, 4, generator=torch_generator("images"), dtype=torch.float64)
kinds = pytest.mark.parametrize("skips", [True, False])


def network(skips: bool, seed: int = 0) -> ResNet:
    net = ResNet(
        2, filters=(4, 8), outputs=3, skips=skips, generator=torch_generator(seed), dtype=torch.float64
    )
    stream = torch_generator(seed, "statistics")
    for part in net.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.running_mean.normal_(generator=stream)
            part.running_var.uniform_(0.5, 2, generator=stream)
    return net.eval()


def inner(net: ResNet, mode: str) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """What block 1 takes, and blocks 1 and 2 as a function of it."""
    net = copy.deepcopy(net).train(mode == "train")
    with torch.no_grad():
        x = net.blocks[0](net.stem(X))
    return x, lambda x: net.blocks[2](net.blocks[1](x))


def cushion(J: Tensor, x: Tensor) -> Tensor:
    J = J.reshape(-1, x.numel())
    return x.numel() ** 0.5 * (J @ x.flatten()).norm() / J.norm() / x.norm()


@kinds
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_each_sample_has_the_cushion_of_its_dense_jacobian(skips: bool, mode: str) -> None:
    net = network(skips)
    x, function = inner(net, mode)
    J = torch.autograd.functional.jacobian(function, x)
    expected = torch.stack([cushion(J[b, ..., b, :, :, :], x[b]) for b in range(3)])
    found = interlayer_cushions(net, X, layers=[("blocks.1", "blocks.2")], mode=mode)
    torch.testing.assert_close(found.cushions[0, :, 0], expected, rtol=1e-9, atol=1e-12)
    assert not found.stderr.any()
    assert found.layers == ("blocks.1 → blocks.2",)


@kinds
def test_the_whole_batch_has_that_of_the_whole_jacobian(skips: bool) -> None:
    net = network(skips)
    x, function = inner(net, "train")
    expected = cushion(torch.autograd.functional.jacobian(function, x), x)
    found = interlayer_cushions(net, X, layers=[("blocks.1", "blocks.2")], mode="train", over="batch")
    assert found.cushions.shape == (1, 1, 1)
    torch.testing.assert_close(found.cushions[0, 0, 0], expected, rtol=1e-9, atol=1e-12)


def test_statistics_of_the_batch_as_constants_are_a_mode_of_their_own() -> None:
    net = network(False)
    frozen = copy.deepcopy(net).train()
    for part in frozen.modules():
        if isinstance(part, nn.BatchNorm2d):
            part.momentum = 1.0
    frozen(X)
    for part in frozen.modules():
        if isinstance(part, nn.BatchNorm2d):  # the running variance is the unbiased one
            count = X.shape[0] * {4: 16, 8: 4}[part.num_features]
            part.running_var.mul_((count - 1) / count)
    expected = interlayer_cushions(frozen.eval(), X)
    found = interlayer_cushions(net, X, mode="batch")
    torch.testing.assert_close(found.cushions, expected.cushions, rtol=1e-9, atol=0)


def test_a_normalised_plain_block_is_blind_to_the_size_of_its_whole_input() -> None:
    """Why yu2019 reads 2.7e-7: in training mode a batch of one, or the whole batch, is scaled away but for BN's ε."""
    plain, residual = network(False), network(True)
    settings: dict[str, Any] = {"layers": ["blocks.1"], "mode": "train"}
    whole = {"over": "batch", **settings}
    assert interlayer_cushions(plain, X[:1], **settings).cushions.item() < 1e-3
    assert interlayer_cushions(plain, X, **whole).cushions.item() < 1e-3
    assert interlayer_cushions(plain, X, **settings).cushions.min() > 0.05
    assert interlayer_cushions(residual, X[:1], **settings).cushions.item() > 0.05


def test_probes_estimate_the_norm_within_their_error() -> None:
    net = network(True)
    exact = interlayer_cushions(net, X, layers=["blocks.1"], probes=0)
    found = interlayer_cushions(net, X, layers=["blocks.1"], probes=400)
    assert bool((found.stderr > 0).all())
    assert bool(((found.cushions - exact.cushions).abs() < 4 * found.stderr).all())
    assert bool((found.stderr / found.cushions < 0.03).all())
    again = interlayer_cushions(net, X, layers=["blocks.1"], probes=400)
    assert torch.equal(again.cushions, found.cushions)
    other = interlayer_cushions(net, X, layers=["blocks.1"], probes=400, seed=1)
    assert not torch.equal(other.cushions, found.cushions)


def test_blocks_are_the_default_and_members_are_measured_as_by_themselves() -> None:
    nets = [network(True, seed) for seed in range(2)]
    for backend in ("batched", "loop"):
        found = interlayer_cushions(Ensemble.of(nets, backend=backend), [(X[:2],), (X[2:],)])
        assert found.layers == nets[0].block_names
        alone = torch.cat([interlayer_cushions(net, X).cushions for net in nets])
        torch.testing.assert_close(found.cushions, alone, rtol=1e-10, atol=0)


def test_a_linear_layer_has_its_singular_values() -> None:
    layer = nn.Linear(4, 3, dtype=torch.float64)
    x = torch.randn(5, 4, generator=torch_generator("rows"), dtype=torch.float64)
    found = interlayer_cushions(nn.Sequential(layer, nn.ReLU()), x, layers=["0"]).cushions[0, :, 0]
    expected = 2 * (x @ layer.weight.T).norm(dim=1) / layer.weight.norm() / x.norm(dim=1)
    torch.testing.assert_close(found, expected.detach(), rtol=1e-12, atol=0)


class Mixing(nn.Module):
    """Subtracts the mean over samples in every mode."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer(x)
        return x - x.mean(0)


def test_wrong_calls_are_refused() -> None:
    net = network(True)
    rows = torch.ones(3, 4, dtype=torch.float64)
    with pytest.raises(
        Refused, match="a sample's output depends on the other samples, so that it has no Jacobian"
    ):
        interlayer_cushions(nn.Sequential(Mixing()), rows, layers=["0"])
    with pytest.raises(Refused, match=r"over is 'batch' but mode 'eval', in which samples do not depend"):
        interlayer_cushions(net, X, over="batch")
    with pytest.raises(Refused, match=r"layer 'blocks.9' does not exist in the network.*Did you mean"):
        interlayer_cushions(net, X, layers=[("blocks.0", "blocks.9")])
    with pytest.raises(
        Refused, match=r"layer 'blocks.0' is not called|does not depend on what 'blocks.2' takes"
    ):
        interlayer_cushions(net, X, layers=[("blocks.2", "blocks.0")])
    words = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(8, 2))
    with pytest.raises(
        Refused, match=r"layer '0' takes torch.int64, which has no derivative; begin at a later"
    ):
        interlayer_cushions(words, torch.zeros(3, 2, dtype=torch.int64), layers=["0"])
