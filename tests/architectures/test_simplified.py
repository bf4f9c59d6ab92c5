from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.initialisers import HMWI, KWI, standard_normal
from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResNet
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

SMALL: dict[str, Any] = {"blocks": 2, "filters": (4, 6, 8), "outputs": 3, "dtype": torch.float64}


def id_entries(net: nn.Module) -> list[Tensor]:
    """Views of the kernel entries (c, c, 0, 0) of every block, c ≤ min(C, D)."""
    return [net.get_submodule(name).conv.weight.detach()[:, :, 1, 1].diagonal() for name in net.block_names]


def weights(net: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for name, p in net.named_parameters() if "bias" not in name])


def test_adding_one_to_id_entries_makes_the_residual_network_plain() -> None:
    residual = SimplifiedResNet(**SMALL, generator=torch_generator(0), init=KWI())
    plain = SimplifiedPlnNet(**SMALL, generator=torch_generator(1))
    plain.load_state_dict(residual.state_dict())
    x = standard_normal((5, 3, 8, 12), torch_generator("images"))
    assert not torch.allclose(plain(x), residual(x))
    for entries in id_entries(plain):
        entries.add_(1.0)
    torch.testing.assert_close(plain(x), residual(x), rtol=1e-12, atol=1e-12)
    for net in (plain, residual):
        net(x).square().sum().backward()
    for ours, theirs in zip(plain.parameters(), residual.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-10, atol=1e-10)


def test_blocks_are_relu_of_the_convolution_and_the_input() -> None:
    net = SimplifiedResNet(**SMALL, generator=torch_generator(0))
    x = standard_normal((2, 4, 8, 8), torch_generator("features"))
    same, strided = net.blocks[1], net.blocks[2]
    conv = F.conv2d(x, same.conv.weight, same.conv.bias, padding=1)
    torch.testing.assert_close(same(x), torch.relu(conv + x))
    conv = F.conv2d(x, strided.conv.weight, strided.conv.bias, stride=2, padding=1)
    carried = torch.zeros(2, 6, 4, 4, dtype=torch.float64)
    carried[:, :4] = x[:, :, ::2, ::2]
    torch.testing.assert_close(strided(x), torch.relu(conv + carried))


@pytest.mark.parametrize("blocks", [6, 10, 14])
def test_depths_are_3n_plus_2(blocks: int) -> None:
    net = SimplifiedPlnNet(blocks, generator=torch_generator(0))
    weighted = [m for m in net.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(weighted) == 3 * blocks + 2
    assert len(net.block_names) == 3 * blocks
    assert not [m for m in net.modules() if isinstance(m, nn.BatchNorm2d)]


def test_weights_at_depth_32_match_table_3_before_training() -> None:
    plain = SimplifiedPlnNet(10, generator=torch_generator(0), init=KWI())
    p0 = weights(plain)
    assert p0.std().item() == pytest.approx(0.070, abs=0.001)
    assert p0.abs().sum().item() == pytest.approx(25_000, rel=0.02)
    assert sum(e.numel() for e in id_entries(plain)) == 1_072
    assert torch.cat(id_entries(plain)).abs().sum().item() == pytest.approx(67, rel=0.1)
    residual = SimplifiedResNet(10, generator=torch_generator(0), init=HMWI())
    for entries in id_entries(residual):
        entries.add_(1.0)
    t0 = weights(residual)
    assert t0.mean().item() == pytest.approx(0.0023, abs=0.00005)
    assert t0.std().item() == pytest.approx(0.048, abs=0.0005)
    assert torch.cat(id_entries(residual)).sum().item() == pytest.approx(1_072, rel=0.005)


def test_pooling_averages_the_last_maps() -> None:
    net = SimplifiedPlnNet(**SMALL, generator=torch_generator(0))
    seen: list[Tensor] = []
    net.blocks[-1].register_forward_hook(lambda module, args, output: seen.append(output))
    output = net(standard_normal((2, 3, 32, 32), torch_generator("images")))
    assert seen[0].shape == (2, 8, 8, 8)
    torch.testing.assert_close(output, net.output(F.avg_pool2d(seen[0], 8)[:, :, 0, 0]))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"blocks": 0}, "blocks is 0, but must be a whole number of at least 1"),
        ({"filters": ()}, r"filters are empty; give one number a group, such as \(16, 32, 64\)"),
        ({"filters": (8, 4)}, r"filters are \(8, 4\), but must not fall, .* sort them"),
        ({"filters": (8, 0.5)}, "filters is 0.5, but must be a whole number"),
        ({"channels": 0}, "channels is 0, but must be a whole number of at least 1"),
    ],
)
def test_wrong_layouts_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        SimplifiedResNet(**(SMALL | changes), generator=torch_generator(0))


def test_wrong_images_are_refused() -> None:
    net = SimplifiedResNet(**SMALL, generator=torch_generator(0))
    with pytest.raises(
        Refused, match=r"shape \(2, 1, 8, 8\), but this network takes \(batch, 3, height, width\)"
    ):
        net(torch.zeros(2, 1, 8, 8, dtype=torch.float64))
    with pytest.raises(
        Refused, match="Images of 3 × 8 are too small to be halved 2 times; pass at least 4 × 4"
    ):
        net(torch.zeros(2, 3, 3, 8, dtype=torch.float64))
