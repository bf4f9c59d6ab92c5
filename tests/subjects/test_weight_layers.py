"""A linear layer that stores its weights the other way round measures as the usual one does."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from oracles.stock_models import stock_model
from skiplab.measurements.noise_stability import layer_cushions, weight_noise
from skiplab.measurements.singularities import singularities
from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
from skiplab.subjects.weight_layers import inputs_of, is_transposed, unit_axis, units_of, weight_layers


class Conv1D(nn.Module):
    """As transformers has it: x W + b with W (inputs, units)."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.nf, self.nx = linear.out_features, linear.in_features
        self.weight = nn.Parameter(linear.weight.detach().T.clone())
        self.bias = nn.Parameter(linear.bias.detach().clone())

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x.view(-1, x.shape[-1]), self.weight).view(*x.shape[:-1], self.nf)


@pytest.fixture
def pair() -> tuple[nn.Module, nn.Module, Tensor]:
    """A network, the same with its linear layers transposed, and inputs."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        usual = nn.Sequential(
            nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3)
        ).double()
        x = torch.randn(11, 4, dtype=torch.float64)
    other = nn.Sequential(
        *(Conv1D(part) if isinstance(part, nn.Linear) else part for part in copy.deepcopy(usual))
    )
    return usual, other, x


def test_units_and_inputs_are_those_of_the_usual_layer(pair: tuple[nn.Module, nn.Module, Tensor]) -> None:
    usual, other, _ = (weight_layers(net) if isinstance(net, nn.Module) else net for net in pair)
    assert list(usual) == list(other) == ["0", "2", "4"]
    for name, layer in usual.items():
        assert is_transposed(other[name])
        assert not is_transposed(layer)
        for quantity in (units_of, inputs_of, unit_axis):
            assert quantity(other[name]) == quantity(layer)


def test_singularities_and_cushions_are_the_same(pair: tuple[nn.Module, nn.Module, Tensor]) -> None:
    usual, other, x = pair
    ours, theirs = singularities(usual, x), singularities(other, x)
    for own, its in zip(ours.layers, theirs.layers, strict=True):
        assert own.readers == its.readers
        for quantity in ("incoming", "outgoing", "dead", "overlap", "closest", "eigenvalues"):
            torch.testing.assert_close(getattr(own, quantity), getattr(its, quantity))
    torch.testing.assert_close(layer_cushions(usual, x).cushions, layer_cushions(other, x).cushions)


def test_symmetries_hold(pair: tuple[nn.Module, nn.Module, Tensor]) -> None:
    _, other, x = pair
    for measure in (permutation_symmetry, rescaling_symmetry):
        assert bool(measure(other, x).mean_change < 1e-12)


def test_its_weights_take_noise(pair: tuple[nn.Module, nn.Module, Tensor]) -> None:
    _, other, x = pair
    found = weight_noise(other, x, draws=3)
    assert found.layers == ("0", "2", "4")
    assert bool((found.change > 0).all())


@pytest.mark.slow
def test_every_matrix_product_of_a_gpt2_is_a_weight_layer() -> None:
    names = list(weight_layers(stock_model("transformers:gpt2")))
    block = ("attn.c_attn", "attn.c_proj", "mlp.c_fc", "mlp.c_proj")
    assert names == [*(f"transformer.h.{k}.{part}" for k in range(3) for part in block), "lm_head"]
