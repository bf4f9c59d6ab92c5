"""T′ networks are residual networks with all kernels' entries off the diagonals at 0."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.diagonal import SimplifiedDiagonalNet
from skiplab.architectures.initialisers import KWI, standard_normal
from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResNet
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

SIZES: dict[str, Any] = {"blocks": 2, "filters": (4, 8), "outputs": 3, "dtype": torch.float64}
X = standard_normal((5, 3, 8, 8), torch_generator("images"))


def masked_kernel(kernel: Tensor, lower: str) -> Tensor:
    """T_s or T_r from a residual kernel, entry by entry."""
    filters, channels = kernel.shape[:2]
    found = torch.zeros_like(kernel)
    for d in range(filters):
        for c in range(channels):
            if d % channels == c:
                found[d, c] = kernel[d, c]
                if d < channels or lower != "dense":
                    found[d, c, 1, 1] += 1
            elif d >= channels and lower != "diagonal":
                found[d, c] = kernel[d, c]
    return found


@pytest.mark.parametrize("lower", ["diagonal", "dense", "dense-with-ones"])
def test_they_are_plain_networks_with_diagonal_kernels(lower: str) -> None:
    seeded = {"generator": torch_generator(2), "init": KWI()}
    net = SimplifiedDiagonalNet(**SIZES, lower=lower, **seeded)
    residual = SimplifiedResNet(**SIZES, generator=torch_generator(2), init=KWI())
    plain = SimplifiedPlnNet(**SIZES, generator=torch_generator(0))
    plain.load_state_dict(residual.state_dict())
    with torch.no_grad():
        for block in plain.blocks:
            block.conv.bias.normal_(generator=torch_generator("biases"))
            block.conv.weight.copy_(masked_kernel(block.conv.weight, lower))
        for ours, theirs in zip(net.blocks, plain.blocks, strict=True):
            count = len(ours.conv.bias)
            ours.conv.bias.copy_(theirs.conv.bias[:count])
            if ours.second is not None:
                ours.second.bias.copy_(theirs.conv.bias[count:])
    torch.testing.assert_close(net(X), plain(X), rtol=1e-12, atol=1e-12)
    assert net(X).std() > 0.01


def test_channels_stay_apart_within_a_group() -> None:
    net = SimplifiedDiagonalNet(**SIZES, generator=torch_generator(0))
    x = standard_normal((1, 4, 8, 8), torch_generator("features")).abs()
    changed = x.clone()
    changed[:, 1] *= 2
    moved = (net.blocks[2](changed) != net.blocks[2](x)).flatten(2).any(2)[0]
    assert moved.nonzero().flatten().tolist() == [1, 5]  # the same channel of both halves


def test_shifted_channels_come_from_their_own_and_from_the_one_before() -> None:
    """P + R_s: channel 2 receives channel 1 as the identity's image and itself through the kernel."""
    net = SimplifiedDiagonalNet(**SIZES, shift=1, generator=torch_generator(0))
    same = SimplifiedDiagonalNet(**SIZES, generator=torch_generator(0))
    x = standard_normal((1, 4, 8, 8), torch_generator("features")).abs()
    own = same.blocks[1].conv(x)
    torch.testing.assert_close(net.blocks[1](x), torch.relu(x[:, [3, 0, 1, 2]] + own))
    torch.testing.assert_close(same.blocks[1](x), torch.relu(x + own))
    wide = net.blocks[2]
    carried = x[:, [3, 0, 1, 2], ::2, ::2]
    expected = torch.cat((carried + wide.conv(x), carried + wide.second(x)), 1).relu()
    torch.testing.assert_close(wide(x), expected)


def test_they_have_few_parameters() -> None:
    net = SimplifiedDiagonalNet(6, generator=torch_generator(0))
    kernels = [p for name, p in net.blocks.named_parameters() if p.ndim == 4]
    assert sum(p.numel() for p in kernels) == 9 * 6 * (16 + 32 + 64)
    assert not [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]


def test_what_cannot_be_built_is_refused() -> None:
    with pytest.raises(
        Refused, match="lower 'full' is unknown; choose one of diagonal, dense, dense-with-ones"
    ):
        SimplifiedDiagonalNet(**SIZES, lower="full", generator=torch_generator(0))
    with pytest.raises(Refused, match="turns 4 channels into 6, but T′ keeps or doubles them"):
        SimplifiedDiagonalNet(**(SIZES | {"filters": (4, 6)}), generator=torch_generator(0))
