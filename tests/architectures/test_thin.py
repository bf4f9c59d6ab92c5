from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.activations import CReLU
from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.thin import KINDS, ThinNet, modules_of
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

SMALL: dict[str, Any] = {"r": 2, "filters": (4, 6), "outputs": 3, "image_size": 8, "dtype": torch.float64}
every_kind = pytest.mark.parametrize("kind", KINDS)


def build(seed: int = 0, **changes: Any) -> Any:
    return ThinNet(**(SMALL | changes), generator=torch_generator(seed))


def noise(*shape: int, name: str = "images") -> Tensor:
    return standard_normal(shape, torch_generator(name))


# The concatenated rectifier.


@pytest.mark.parametrize("dim", [1, -1])
def test_crelu_holds_both_signs(dim: int) -> None:
    x = noise(2, 3, 4)
    halves = CReLU(dim)(x).chunk(2, dim)
    torch.testing.assert_close(halves[0], x.clamp(min=0), rtol=0, atol=0)
    torch.testing.assert_close(halves[1], (-x).clamp(min=0), rtol=0, atol=0)
    torch.testing.assert_close(halves[0] - halves[1], x, rtol=0, atol=0)


def test_crelu_doubles_channels_by_default() -> None:
    assert CReLU()(noise(2, 3, 4, 5)).shape == (2, 6, 4, 5)


# The layers of appendix A4.


def test_modules_are_those_of_appendix_a4() -> None:
    listed = [(8, 1), (8, 1), (16, 2), (16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (64, 2)]
    assert modules_of(2, (8, 16, 32, 64)) == listed
    net = ThinNet(2, generator=torch_generator(0))
    convolutions = [part for part in net.modules() if isinstance(part, nn.Conv2d)]
    assert [(conv.out_channels, conv.stride[0]) for conv in convolutions] == listed
    assert net.output.in_features == 64 * 2 * 2


@every_kind
@pytest.mark.parametrize(("r", "depth"), [(1, 6), (2, 10), (7, 30), (49, 198)])
def test_depth_is_4r_plus_2(kind: str, r: int, depth: int) -> None:
    net = ThinNet(r, generator=torch_generator(0), kind=kind)
    assert sum(isinstance(part, nn.Conv2d) for part in net.modules()) == 4 * r + 1
    assert sum(isinstance(part, nn.Linear) for part in net.modules()) == 1
    assert net.depth == 4 * r + 2 == depth
    assert sum(isinstance(part, nn.BatchNorm2d) for part in net.modules()) == 4 * r + 1
    assert len(net.block_names) == (2 * r if kind == "resnet" else 4 * r + 1)


def parameter_count(r: int, filters: tuple[int, ...], seen: int) -> int:
    """Kernels, two numbers a channel for normalisation, the output; a filter gives ``seen`` channels."""
    plan = modules_of(r, filters)
    channels = [3, *(seen * width for width, _ in plan)]
    kernels = sum(9 * before * width for before, (width, _) in zip(channels, plan, strict=False))
    return kernels + 2 * sum(width for width, _ in plan) + 10 * (channels[-1] * 2 * 2 + 1)


@pytest.mark.parametrize(("r", "ratio"), [(1, 1.0100), (5, 0.9989), (12, 0.9968), (49, 0.9957)])
def test_crelu_has_as_many_parameters_to_one_per_cent(r: int, ratio: float) -> None:
    nets = {kind: ThinNet(r, generator=torch_generator(0), kind=kind) for kind in KINDS}
    counts = {kind: sum(p.numel() for p in net.parameters()) for kind, net in nets.items()}
    assert nets["crelu"].filters == (6, 11, 23, 45)
    assert counts["relu"] == counts["resnet"] == parameter_count(r, (8, 16, 32, 64), seen=1)
    assert counts["crelu"] == parameter_count(r, (6, 11, 23, 45), seen=2)
    assert counts["crelu"] / counts["relu"] == pytest.approx(ratio, abs=1e-4)


def conv(layer: nn.Conv2d, x: np.ndarray) -> np.ndarray:
    """A padded 3 × 3 convolution as nine shifted sums over channels, then the stride."""
    kernel, stride = layer.weight.detach().numpy(), layer.stride[0]
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = np.zeros((len(x), len(kernel), height, width))
    for i in range(3):
        for j in range(3):
            window = padded[:, :, i : i + height, j : j + width]
            total += np.einsum("oc,bchw->bohw", kernel[:, :, i, j], window)
    if layer.bias is not None:
        total += layer.bias.detach().numpy()[:, None, None]
    return total[:, :, ::stride, ::stride]


def normed(x: np.ndarray, batch_norm: bool) -> np.ndarray:
    if not batch_norm:
        return x
    mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


def by_hand(net: Any, x: np.ndarray) -> list[np.ndarray]:
    """What every block returns in training mode, and the output at the end."""
    found = []
    for block in net.blocks if net.kind != "resnet" else ():
        x = normed(conv(block.conv, x), net.batch_norm)
        x = np.concatenate([x, -x], axis=1) if net.kind == "crelu" else x
        x = np.maximum(x, 0)
        found.append(x)
    if net.kind == "resnet":
        x = conv(net.stem, x)
        for block in net.blocks:
            inner = conv(block.conv1, np.maximum(normed(x, net.batch_norm), 0))
            field = conv(block.conv2, np.maximum(normed(inner, net.batch_norm), 0))
            step = x.shape[2] // field.shape[2]
            field[:, : x.shape[1]] += x[:, :, ::step, ::step]
            x = field
            found.append(x)
        x = np.maximum(normed(x, net.batch_norm), 0)
    flat = x.reshape(len(x), -1)
    return [*found, flat @ net.output.weight.detach().numpy().T + net.output.bias.detach().numpy()]


@every_kind
@pytest.mark.parametrize("batch_norm", [True, False])
@pytest.mark.parametrize(("r", "filters"), [(1, (4, 6)), (2, (4, 6)), (3, (2, 3, 4, 4))])
def test_networks_follow_their_modules(kind: str, batch_norm: bool, r: int, filters: tuple[int, ...]) -> None:
    net = build(kind=kind, r=r, filters=filters, batch_norm=batch_norm, image_size=16)
    with torch.no_grad():
        for name, parameter in net.named_parameters():
            if "conv" in name and name.endswith("bias"):
                parameter.copy_(noise(*parameter.shape, name=name))
    x = noise(3, 3, 16, 16)
    seen: list[np.ndarray] = []
    for block in net.blocks:
        block.register_forward_hook(lambda module, args, output: seen.append(output.detach().numpy()))
    output = net(x).detach().numpy()
    expected = by_hand(net, x.numpy())
    for ours, theirs in zip([*seen, output], expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_equal_seeds_give_relu_and_resnet_equal_weights_with_hes_deviation() -> None:
    generator = torch_generator(0)
    nets = [build(kind=kind) for kind in ("relu", "resnet")]
    layers = [[part for part in net.modules() if isinstance(part, nn.Conv2d | nn.Linear)] for net in nets]
    for one, other in zip(*layers, strict=True):
        drawn = math.sqrt(2 / one.weight[0].numel()) * standard_normal(one.weight.shape, generator)
        torch.testing.assert_close(one.weight, drawn, rtol=0, atol=0)
        assert torch.equal(one.weight, other.weight)
    assert not torch.allclose(nets[0](noise(3, 3, 8, 8)), nets[1](noise(3, 3, 8, 8)))


def test_crelu_keeps_the_size_of_signals_under_hes_weights() -> None:
    # E of a convolution's square is that of what CReLU was given, away from the padding.
    ratios = []
    for seed in range(20):
        block = build(seed, kind="crelu", filters=(32, 64), batch_norm=False).blocks[1]
        signal = noise(4, block.conv.in_channels // 2, 16, 16, name=f"signal {seed}")
        field = block.conv(CReLU()(signal))[:, :, 1:-1, 1:-1]
        ratios.append((field.square().mean() / signal.square().mean()).item())
    error = np.std(ratios, ddof=1) / math.sqrt(len(ratios))
    assert error < 0.02
    assert abs(np.mean(ratios) - 1) < 4 * error


# Refusals.


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"r": 0}, "r is 0, but must be a whole number of at least 1"),
        ({"kind": "cre"}, r"kind 'cre' is unknown; .* Did you mean crelu or relu\?"),
        ({"filters": ()}, "filters are empty; give one number a group"),
        ({"filters": (8, 4)}, r"filters are \(8, 4\), but must not fall"),
        ({"image_size": 3}, "image_size is 3, but must be at least 4 to be halved 2 times; pass larger"),
        ({"checkpoint_every": 0}, "checkpoint_every is 0, but must be a whole number of at least 1"),
        (
            {"kind": "resnet", "r": 1, "filters": (4, 4, 4)},
            "r is 1 with 3 numbers of filters, .*; make r even",
        ),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        build(**changes)


def test_wrong_images_are_refused() -> None:
    sentence = r"shape \(2, 3, 8, 9\), but this network takes \(batch, 3, 8, 8\); .* another image_size"
    with pytest.raises(Refused, match=sentence):
        build()(noise(2, 3, 8, 9))
