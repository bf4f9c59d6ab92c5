from __future__ import annotations

import pytest
import torch
from torch import nn

from skiplab.architectures.fully_connected import ResidualNet
from skiplab.architectures.toy import TOY_NETS
from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.subjects.direct_connections import SILENT, SKIP, WEIGHT, connections, direct_effects


def positive(layers: int, units: int = 2) -> list[torch.Tensor]:
    return list(0.5 + torch.rand(layers, units, generator=torch_generator("a"), dtype=torch.float64))


def test_effects_between_layers_that_are_not_joined_are_zero() -> None:
    effects = direct_effects(TOY_NETS["residual"](3), positive(4), 1.0)
    assert set(effects) == {(before, after) for after in range(2, 6) for before in range(1, after)}
    two_thirds = 2 / 3 * (torch.ones(2, 2, dtype=torch.float64) + torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(effects[1, 2], two_thirds)
    assert float(effects[1, 3].abs().max()) == 0
    assert effects[4, 5].shape == (1, 2)


@pytest.mark.parametrize(
    ("name", "skips"), [("plain", 0), ("residual", 6), ("hyper-residual", 12), ("path-residual", 12)]
)
def test_toy_networks_have_the_connections_of_their_equations(name: str, skips: int) -> None:
    found = connections(TOY_NETS[name](3), positive(4))
    kinds = [each.kind for each in found]
    assert (kinds.count(WEIGHT), kinds.count(SKIP), kinds.count(SILENT)) == (14, skips, skips)
    assert all(each.before < each.after for each in found)
    if name != "path-residual":
        assert all(each.source == each.target for each in found if each.kind == SKIP)


def test_other_networks_with_named_blocks_can_be_looked_at() -> None:
    net = ResidualNet(3, 4, 2, 1, generator=torch_generator(0), dtype=torch.float64)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.uniform_(generator=torch_generator(1))
    before = {name: tensor.clone() for name, tensor in net.named_parameters()}
    activities = [positive(1, 3)[0], *positive(2, 4)]
    found = connections(net, activities)
    skips = [(each.before, each.source, each.after, each.target) for each in found if each.kind == SKIP]
    assert skips == [(2, unit, 3, unit) for unit in range(1, 5)]
    assert sum(each.kind == WEIGHT for each in found) == 3 * 4 + 4 * 4 + 4
    assert all(torch.equal(before[name], tensor) for name, tensor in net.named_parameters())
    assert all(not part._forward_hooks for part in net.modules())


def test_wrong_activities_are_refused_and_no_hook_is_left() -> None:
    net: nn.Module = TOY_NETS["plain"](2)
    with pytest.raises(Refused, match="activities are 2, but must be 3"):
        direct_effects(net, positive(2), 1.0)
    with pytest.raises(Refused, match="activities must all be positive"):
        connections(net, [-x for x in positive(3)])
    with pytest.raises(Refused, match="features"):
        direct_effects(net, positive(3, units=3), 1.0)
    assert all(not part._forward_hooks for part in net.modules())
