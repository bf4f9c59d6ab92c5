from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook

from skiplab.architectures.initialisers import He, UniformByFanIn, standard_normal
from skiplab.architectures.rectified import fused_by
from skiplab.architectures.resnet import ResNet
from skiplab.randomness import torch_generator

SMALL: dict[str, Any] = {"blocks": 2, "filters": (4, 8), "outputs": 3, "dtype": torch.float64}


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize(("blocks", "count"), [(3, 269_722), (5, 464_154), (7, 658_586)])
def test_resnet_20_32_and_44_have_their_known_numbers_of_parameters(
    blocks: int, count: int, skips: bool
) -> None:
    net = ResNet(blocks, generator=torch_generator(0), skips=skips)
    assert sum(p.numel() for p in net.parameters()) == count
    weighted = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(weighted) == 6 * blocks + 2


def normed(x: Tensor) -> Tensor:
    mean, variance = x.mean((0, 2, 3), keepdim=True), x.var((0, 2, 3), unbiased=False, keepdim=True)
    return (x - mean) / (variance + 1e-5).sqrt()


def test_the_stem_computes_what_stands_in_it() -> None:
    net = ResNet(**SMALL, generator=torch_generator(0))
    x = standard_normal((3, 3, 8, 8), torch_generator("images"))
    net.stem[2] = nn.Tanh()
    field = normed(F.conv2d(x, net.stem[0].weight, padding=1))
    torch.testing.assert_close(net.stem(x), torch.tanh(field))
    with fused_by(None, lambda x, *parts: x):
        torch.testing.assert_close(net.stem(x), torch.tanh(field))
        net.stem[2] = nn.ReLU()
        net.stem.append(nn.Tanh())
        torch.testing.assert_close(net.stem(x), torch.tanh(torch.relu(field)))


def test_the_stem_is_a_sequence_that_can_be_cut() -> None:
    net = ResNet(**SMALL, generator=torch_generator(0))
    x = standard_normal((3, 3, 8, 8), torch_generator("images"))
    field = normed(F.conv2d(x, net.stem[0].weight, padding=1))
    torch.testing.assert_close(net.stem[:2](x), field)
    torch.testing.assert_close(net.stem[2:](field), torch.relu(field))


def test_the_stems_relu_is_called_unless_a_rule_takes_its_place() -> None:
    net = ResNet(**SMALL, generator=torch_generator(0))
    x = standard_normal((3, 3, 8, 8), torch_generator("images"))
    called: list[nn.Module] = []
    # A hook on all modules, as profilers have it.
    hook = register_module_forward_hook(lambda part, args, output: called.append(part))
    expected = net.stem(x)
    with fused_by(None, lambda x, *parts: None):
        torch.testing.assert_close(net.stem(x), expected, rtol=0, atol=0)
    hook.remove()
    assert called.count(net.stem[2]) == 2
    with fused_by(None, lambda x, *parts: 2 * expected):
        torch.testing.assert_close(net.stem(x), 2 * expected)
        net.stem[2].register_forward_hook(lambda part, args, output: called.append(part))
        torch.testing.assert_close(net.stem(x), expected)
    assert called.count(net.stem[2]) == 3


@pytest.mark.parametrize("skips", [True, False])
@pytest.mark.parametrize(("index", "stride", "filters"), [(1, 1, 4), (2, 2, 8)])
def test_basic_blocks_are_what_he_et_al_draw(skips: bool, index: int, stride: int, filters: int) -> None:
    net = ResNet(**SMALL, generator=torch_generator(0), skips=skips)
    block = net.blocks[index]
    x = standard_normal((3, 4, 8, 8), torch_generator("features"))
    inner = torch.relu(normed(F.conv2d(x, block.conv1.weight, stride=stride, padding=1)))
    field = normed(F.conv2d(inner, block.conv2.weight, padding=1))
    if skips:
        field[:, :4] += x[:, :, ::stride, ::stride]
    assert field.shape == (3, filters, 8 // stride, 8 // stride)
    torch.testing.assert_close(block(x), torch.relu(field), rtol=1e-10, atol=1e-10)


def test_equal_seeds_give_plain_and_residual_equal_weights() -> None:
    nets = [ResNet(**SMALL, generator=torch_generator(0), skips=skips) for skips in (True, False)]
    residual, plain = (net.state_dict() for net in nets)
    assert residual.keys() == plain.keys()
    assert all(torch.equal(residual[name], plain[name]) for name in residual)
    x = standard_normal((4, 3, 8, 8), torch_generator("images"))
    assert not torch.allclose(nets[0](x), nets[1](x))


def test_convolutions_start_with_hes_deviation_and_no_biases() -> None:
    net = ResNet(**SMALL, generator=torch_generator(0))
    generator = torch_generator(0)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            fan_in = layer.weight[0].numel()
            expected = (2 / fan_in) ** 0.5 * standard_normal(layer.weight.shape, generator)
            torch.testing.assert_close(layer.weight, expected)
            assert isinstance(layer, nn.Linear) or layer.bias is None


def test_the_public_torch_codes_weights() -> None:
    """Convolutions N(0, 2/(9·filters)), scales 1, shifts 0, an output uniform in ±1/√64 without biases."""
    init, output = He(counts="output"), UniformByFanIn(biases=False)
    net = ResNet(5, generator=torch_generator(0), init=init, output_init=output, dtype=torch.float64)
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            numbers = layer.weight.numel()
            scaled = layer.weight.square().mean().item() * 9 * layer.out_channels / 2
            assert scaled == pytest.approx(1, abs=5 * (2 / numbers) ** 0.5)
        if isinstance(layer, nn.BatchNorm2d):
            assert layer.weight.eq(1).all()
            assert layer.bias.eq(0).all()
    assert net.output.weight.abs().max() < 1 / 8 < net.output.weight.abs().max() * 1.01
    assert not net.output.bias.any()
