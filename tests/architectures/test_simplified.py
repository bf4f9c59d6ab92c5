from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook

from skiplab.architectures.initialisers import HMWI, KWI, fans, standard_normal
from skiplab.architectures.rectified import fused_by
from skiplab.architectures.simplified import (
    SimplifiedPlnNet,
    SimplifiedResMLP,
    SimplifiedResNet,
    blocks_of_depth,
)
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

SMALL: dict[str, Any] = {"blocks": 2, "filters": (4, 6, 8), "outputs": 3, "dtype": torch.float64}


def id_entries(net: nn.Module) -> list[Tensor]:
    """Views of the kernel entries (c, c, 0, 0) of every block, c ≤ min(C, D)."""
    return [net.get_submodule(name).conv.weight.detach()[:, :, 1, 1].diagonal() for name in net.block_names]


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


def kernels(net: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in net.parameters() if p.ndim == 4])


def test_weights_at_depth_32_match_table_3_before_training() -> None:
    """Table 3 counts the stem, and neither the output nor biases; its figures have two digits."""
    plain = SimplifiedPlnNet(10, generator=torch_generator(0))
    p0 = kernels(plain)
    assert p0.std().item() == pytest.approx(0.070, abs=0.001)
    assert p0.abs().sum().item() == pytest.approx(25_000, rel=0.02)
    assert p0[p0.abs() >= 0.25].abs().sum().item() == pytest.approx(412, rel=0.05)  # printed: 420
    assert sum(e.numel() for e in id_entries(plain)) == 1_072
    assert torch.cat(id_entries(plain)).abs().sum().item() == pytest.approx(65, abs=5)  # printed: 67
    residual = SimplifiedResNet(10, generator=torch_generator(0))
    for entries in id_entries(residual):
        entries.add_(1.0)
    t0 = kernels(residual)
    assert t0.mean().item() == pytest.approx(0.0023, abs=0.00005)
    assert t0.std().item() == pytest.approx(0.048, abs=0.0005)
    assert t0.abs().sum().item() == pytest.approx(1_930, rel=0.005)  # printed: 1,900
    assert torch.cat(id_entries(residual)).sum().item() == pytest.approx(1_072, rel=0.005)


def squared_norm(net: nn.Module) -> float:
    return sum(float(p.detach().double().square().sum()) for p in net.parameters())


@pytest.mark.parametrize(
    ("depth", "plain", "residual"), [(20, 1381, 5.16), (32, 2273, 6.55), (44, 3169, 7.98)]
)
def test_norms_before_training_are_those_that_table_4_implies(
    depth: int, plain: float, residual: float
) -> None:
    """Its weight decay times 2 · 128 / λ; the standard deviations are 7 and .12, biases are counted."""
    blocks = blocks_of_depth(depth)
    assert squared_norm(SimplifiedPlnNet(blocks, generator=torch_generator(0))) == pytest.approx(
        plain, abs=21
    )
    found = squared_norm(SimplifiedResNet(blocks, generator=torch_generator(0)))
    assert found == pytest.approx(residual, abs=0.4)
    printed = squared_norm(SimplifiedResNet(blocks, generator=torch_generator(0), init=HMWI(counts="input")))
    assert printed > found + 0.6  # eq 4 with input channels, as printed, would have been seen


def test_a_pair_of_one_seed_shares_its_draws() -> None:
    plain, residual = (kind(2, generator=torch_generator(3)) for kind in (SimplifiedPlnNet, SimplifiedResNet))
    assert torch.equal(plain.output.weight, residual.output.weight)
    for ours, theirs in zip(plain.blocks, residual.blocks, strict=True):
        scale = KWI().deviation(*fans(ours.conv)) / HMWI().deviation(*fans(theirs.conv))
        torch.testing.assert_close(ours.conv.weight, scale * theirs.conv.weight, rtol=1e-5, atol=1e-8)


def test_depths_that_no_network_has_are_refused() -> None:
    assert [blocks_of_depth(depth) for depth in (20, 32, 44)] == [6, 10, 14]
    with pytest.raises(Refused, match=r"depth is 21, but three groups of N blocks have 3N \+ 2 layers"):
        blocks_of_depth(21)


def test_fully_connected_layers_are_relu_of_the_matrix_and_the_input() -> None:
    net = SimplifiedResMLP(3, (5, 2, 4), 3, generator=torch_generator(0), dtype=torch.float64)
    x = standard_normal((6, 5), torch_generator("rows"))
    narrowing, widening = net.blocks
    torch.testing.assert_close(narrowing(x), torch.relu(x[:, :2] + narrowing.linear(x)))
    carried = torch.cat((x[:, :2], torch.zeros(6, 2, dtype=torch.float64)), 1)
    torch.testing.assert_close(widening(x[:, :2]), torch.relu(carried + widening.linear(x[:, :2])))
    with pytest.raises(Refused, match=r"widths are \(5,\), but a block lies between two; give at least 2"):
        SimplifiedResMLP(3, (5,), 3, generator=torch_generator(0))


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


def test_the_stem_can_be_cut_and_computes_what_stands_in_it() -> None:
    net = SimplifiedResNet(1, generator=torch_generator(0), dtype=torch.float64)
    x = standard_normal((2, 3, 8, 8), torch_generator("images"))
    field = net.stem[0](x)
    torch.testing.assert_close(net.stem[:1](x), field)
    called: list[nn.Module] = []
    # A hook on all modules, as profilers have it.
    hook = register_module_forward_hook(lambda part, args, output: called.append(part))
    torch.testing.assert_close(net.stem(x), torch.relu(field))
    hook.remove()
    assert called.count(net.stem[1]) == 1
    with fused_by(lambda x, conv, shortcut: x):
        assert net.stem(x) is x
        net.stem[1].register_forward_hook(lambda part, args, output: called.append(part))
        torch.testing.assert_close(net.stem(x), torch.relu(field))
        net.stem[1] = nn.Tanh()
        torch.testing.assert_close(net.stem(x), torch.tanh(field))
        net.stem[1] = nn.ReLU()
        net.stem.append(nn.Tanh())
        torch.testing.assert_close(net.stem(x), torch.tanh(torch.relu(field)))
