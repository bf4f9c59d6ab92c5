from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.path_toys import BlockToy
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

DOUBLE: dict[str, Any] = {"dtype": torch.float64}


def toy(seed: int = 0, **settings: Any) -> BlockToy:
    return BlockToy(generator=torch_generator(seed), **DOUBLE, **settings)


def batch(size: int = 7) -> Tensor:
    return standard_normal((size, 50), torch_generator("inputs"))


def test_without_normalisation_it_is_equation_8() -> None:
    net, h = toy(), batch()
    for place, block in enumerate(net.blocks):
        field = torch.relu(h @ block.linear.weight.T)
        h = field + h if place else field
    torch.testing.assert_close(net(batch()), net.output(h), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("norm", ["after", "before"])
def test_with_normalisation_it_is_equation_22_centred(norm: str) -> None:
    def normed(x: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
        return scale * (x - x.mean(0)) / (x.var(0, unbiased=False) + 1e-5).sqrt() + shift

    net, h = toy(norm=norm, scale_init="uniform"), batch()
    for place, block in enumerate(net.blocks):
        bn, field = block.norm, h @ block.linear.weight.T
        if norm == "after":
            field = normed(torch.relu(field), bn.weight, bn.bias)
        else:
            field = torch.relu(normed(field, bn.weight, bn.bias))
        h = field + h if place else field
    torch.testing.assert_close(net(batch()), net.output(h), rtol=1e-10, atol=1e-10)


def test_appendix_c_has_ten_blocks_of_twenty_units_and_the_first_has_no_skip() -> None:
    net = toy()
    assert [block.skip for block in net.blocks] == [False] + [True] * 9
    assert [tuple(block.linear.weight.shape) for block in net.blocks] == [(20, 50)] + [(20, 20)] * 9
    assert net.block_names == tuple(f"blocks.{k}" for k in range(10))
    assert len(toy(extra=True).blocks) == 11


def test_weights_have_the_papers_norm_times_the_gain_and_are_the_same_with_every_norm() -> None:
    plain, halved, normed = toy(width=400), toy(width=400, gain=0.5), toy(width=400, norm="after")
    for place in range(10):
        weight = plain.blocks[place].linear.weight
        assert weight.square().sum().item() / 400 == pytest.approx(1, abs=0.03)
        assert torch.equal(halved.blocks[place].linear.weight, weight * 0.5)
        assert torch.equal(normed.blocks[place].linear.weight, weight)


def test_scales_start_as_asked_one_per_unit_or_per_layer() -> None:
    assert toy().scales() == {}
    ones = toy(norm="after").scales()
    assert next(iter(ones)) == "blocks.0.norm.weight"
    assert torch.equal(torch.cat(list(ones.values())), torch.ones(200, **DOUBLE))
    drawn = torch.cat(list(toy(norm="after", scale_init="uniform").scales().values()))
    assert 0 < drawn.min() < 0.1 < 0.9 < drawn.max() < 1
    scalar = toy(norm="after", scalar_scale=True, scale_init=0.5).scales()
    assert [scale.tolist() for scale in scalar.values()] == [[0.5]] * 10


def test_a_scalar_scale_multiplies_all_units_of_a_layer() -> None:
    by_unit, by_layer = (
        toy(norm="after", scale_init=0.5),
        toy(norm="after", scalar_scale=True, scale_init=0.5),
    )
    torch.testing.assert_close(by_unit(batch()), by_layer(batch()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"norm": "behind"}, "norm 'behind' is unknown"),
        ({"scalar_scale": True}, "norm is None, so there are no scales"),
        ({"norm": "after", "scale_init": "normal"}, "scale_init 'normal' is unknown"),
        ({"blocks": 0}, "blocks is 0"),
    ],
)
def test_what_cannot_be_built_is_refused(settings: dict[str, Any], says: str) -> None:
    with pytest.raises(Refused, match=says):
        toy(**settings)
