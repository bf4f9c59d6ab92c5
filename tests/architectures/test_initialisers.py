from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

from skiplab.architectures.initialisers import (
    HMWI,
    KWI,
    Glorot,
    He,
    Initialiser,
    UniformByFanIn,
    fans,
    standard_normal,
    undrawn,
)
from skiplab.checks import Refused
from skiplab.randomness import torch_generator


@pytest.mark.parametrize(
    ("init", "deviation"),
    [
        (Glorot(), math.sqrt(2 / (12 + 20))),
        (Glorot(gain=0.3), 0.3 * math.sqrt(2 / (12 + 20))),
        (He(), math.sqrt(2 / 12)),
        (He(gain=2.0), 2 * math.sqrt(2 / 12)),
        (He(counts="output"), math.sqrt(2 / 20)),
        (KWI(), math.sqrt(2 / 12)),
        (HMWI(), 1 / 20),
        (HMWI(counts="input"), 1 / 12),
    ],
)
def test_weights_are_normal_with_the_stated_deviation_and_biases_zero(
    init: Initialiser, deviation: float
) -> None:
    layer = undrawn(nn.Linear, 12, 20, dtype=torch.float64)
    assert init.apply(layer, torch_generator(1)) is layer
    expected = deviation * standard_normal((20, 12), torch_generator(1))
    torch.testing.assert_close(layer.weight.detach(), expected, rtol=1e-14, atol=0)
    assert not layer.bias.any()


def test_torchs_own_linear_layers_are_uniform_with_biases() -> None:
    layer = undrawn(nn.Linear, 64, 5_000, dtype=torch.float64)
    UniformByFanIn().apply(layer, torch_generator(1))
    for drawn in (layer.weight.detach(), layer.bias.detach()):
        assert drawn.abs().max().item() == pytest.approx(1 / 8, rel=2e-3)
        assert drawn.abs().max().item() < 1 / 8
        assert drawn.square().mean().item() == pytest.approx(
            UniformByFanIn().deviation(64, 5_000) ** 2, rel=0.03
        )


def test_uniform_weights_may_have_biases_of_zero() -> None:
    with_biases, without = (undrawn(nn.Linear, 64, 5, dtype=torch.float64) for _ in range(2))
    UniformByFanIn().apply(with_biases, torch_generator(1))
    UniformByFanIn(biases=False).apply(without, torch_generator(1))
    assert torch.equal(without.weight, with_biases.weight)
    assert with_biases.bias.any()
    assert not without.bias.any()


def test_an_unknown_count_of_channels_is_refused() -> None:
    with pytest.raises(
        Refused, match=r"counts 'ouput' is unknown; choose one of output, input.*Did you mean output"
    ):
        HMWI(counts="ouput")


def test_drawn_numbers_are_standard_normal() -> None:
    drawn = standard_normal((100_000,), torch_generator(2))
    assert abs(drawn.mean()) < 4 / math.sqrt(100_000)
    assert abs(drawn.std() - 1) < 4 / math.sqrt(200_000)
    assert abs((drawn**4).mean() - 3) < 4 * math.sqrt(96 / 100_000)


@pytest.mark.parametrize(
    ("layer", "expected"),
    [
        (nn.Linear(3, 7, device="meta"), (3, 7)),
        (nn.Conv1d(4, 6, 5, device="meta"), (20, 30)),
        (nn.Conv2d(3, 16, (3, 5), device="meta"), (45, 240)),
        (nn.Conv2d(8, 16, 3, groups=4, device="meta"), (2 * 9, 4 * 9)),
    ],
)
def test_fans_count_the_connections_of_one_unit_and_of_one_input(
    layer: nn.Module, expected: tuple[int, int]
) -> None:
    assert fans(layer) == expected


def test_only_linear_and_convolutional_layers_are_touched() -> None:
    net = nn.Sequential(
        undrawn(nn.Conv2d, 3, 4, kernel_size=3, bias=False, dtype=torch.float64),
        nn.BatchNorm2d(4, dtype=torch.float64),
        undrawn(nn.Linear, 4, 2, dtype=torch.float64),
    )
    norm = net[1]
    with torch.no_grad():
        norm.weight.fill_(3.0)
        norm.bias.fill_(4.0)
    KWI().apply(net, torch_generator(0))
    assert (norm.weight == 3).all()
    assert (norm.bias == 4).all()
    generator = torch_generator(0)
    torch.testing.assert_close(net[0].weight, math.sqrt(2 / 27) * standard_normal((4, 3, 3, 3), generator))
    torch.testing.assert_close(net[2].weight, math.sqrt(2 / 4) * standard_normal((2, 4), generator))


def test_a_seed_names_the_same_weights_in_every_precision() -> None:
    double, single = (undrawn(nn.Linear, 5, 5, dtype=dtype) for dtype in (torch.float64, torch.float32))
    He().apply(double, torch_generator(3))
    He().apply(single, torch_generator(3))
    assert torch.equal(double.weight.float(), single.weight)


def test_an_undrawn_layer_leaves_the_global_generator_alone() -> None:
    before = torch.random.get_rng_state()
    undrawn(nn.Conv2d, 3, 8, kernel_size=3, dtype=torch.float32)
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize("kind", [Glorot, He])
@pytest.mark.parametrize("wrong", [-1.0, math.inf, math.nan])
def test_a_senseless_scale_is_refused(kind: type[Initialiser], wrong: float) -> None:
    with pytest.raises(Refused, match=rf"is {wrong}, but must be a finite number of at least 0"):
        kind(wrong)  # type: ignore[call-arg]


def test_a_seed_in_place_of_a_generator_is_refused() -> None:
    with pytest.raises(
        Refused, match=r"generator is 7, but must be a torch.Generator, such as .*torch_generator"
    ):
        He().apply(undrawn(nn.Linear, 2, 2, dtype=torch.float32), 7)  # type: ignore[arg-type]


def test_a_layer_without_shape_is_refused() -> None:
    with pytest.raises(Refused, match="has no shape yet; pass one batch"):
        He().apply(nn.LazyLinear(3), torch_generator(0))


@pytest.mark.parametrize(
    ("kind", "sizes", "settings"),
    [
        (nn.Linear, (3, 4), {}),
        (nn.Linear, (3, 4), {"bias": False}),
        (nn.Conv2d, (3, 4), {"kernel_size": 3, "padding": 1}),
    ],
)
def test_an_undrawn_layer_is_the_one_that_torch_makes(
    kind: type[nn.Module], sizes: tuple[int, ...], settings: dict[str, Any]
) -> None:
    ours = undrawn(kind, *sizes, dtype=torch.float64, **settings)
    theirs = nn.utils.skip_init(kind, *sizes, device="cpu", dtype=torch.float64, **settings)
    assert type(ours) is type(theirs)
    assert repr(ours) == repr(theirs)
    assert vars(ours).keys() == vars(theirs).keys()
    assert {name: (p.shape, p.dtype, p.requires_grad) for name, p in ours.named_parameters()} == {
        name: (p.shape, p.dtype, p.requires_grad) for name, p in theirs.named_parameters()
    }
    before = [p.clone() for p in ours.parameters()]
    ours.reset_parameters()  # type: ignore[operator]  # it can be drawn anew as any other
    assert not all(torch.equal(*pair) for pair in zip(before, ours.parameters(), strict=True))
