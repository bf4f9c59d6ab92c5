"""A linear layer that stores its weights the other way round measures as the usual one does."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from oracles.stock_models import stock_model
from skiplab.checks import Refused
from skiplab.measurements.noise_stability import layer_cushions, weight_noise
from skiplab.measurements.singularities import singularities
from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
from skiplab.randomness import torch_generator
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


def transposed_convolution(layer: nn.Conv2d) -> nn.ConvTranspose2d:
    """The same map: with kernels of k² taps, turned around, a padding p is one of k − 1 − p."""
    size, padding = layer.kernel_size[0], layer.padding[0]
    assert isinstance(padding, int)
    other = nn.ConvTranspose2d(
        layer.in_channels, layer.out_channels, size, padding=size - 1 - padding, dtype=torch.float64
    )
    other.weight.data = layer.weight.detach().flip(2, 3).transpose(0, 1).clone()
    assert layer.bias is not None
    assert other.bias is not None
    other.bias.data = layer.bias.detach().clone()
    return other


@pytest.fixture
def convolutions() -> tuple[nn.Module, nn.Module, Tensor]:
    """A network of convolutions, the same of transposed ones, and images."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        usual = nn.Sequential(
            *(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 5, 3), nn.ReLU()),
            *(nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(20, 3)),
        ).double()
        x = torch.randn(7, 2, 6, 6, dtype=torch.float64)
    parts = (transposed_convolution(p) if isinstance(p, nn.Conv2d) else p for p in copy.deepcopy(usual))
    return usual, nn.Sequential(*parts), x


def test_a_transposed_convolution_measures_as_the_convolution_that_is_the_same_map(
    convolutions: tuple[nn.Module, nn.Module, Tensor],
) -> None:
    usual, other, x = convolutions
    torch.testing.assert_close(usual(x), other(x))
    ours, theirs = singularities(usual, x), singularities(other, x)
    for own, its in zip(ours.layers, theirs.layers, strict=True):
        assert (own.name, own.readers) == (its.name, its.readers)
        for name in ("incoming", "outgoing", "overlap", "closest", "eigenvalues"):
            torch.testing.assert_close(getattr(own, name), getattr(its, name), equal_nan=True)
    for name in ("cushions", "norms"):
        torch.testing.assert_close(
            getattr(layer_cushions(usual, x), name), getattr(layer_cushions(other, x), name)
        )
    assert layer_cushions(usual, x).random == layer_cushions(other, x).random
    for measure in (permutation_symmetry, rescaling_symmetry):
        torch.testing.assert_close(measure(usual, x).change, measure(other, x).change, atol=1e-9, rtol=0)
        assert float(measure(other, x).change.max()) < 1e-9


def test_a_stride_of_a_transposed_convolution_leaves_the_cushion_of_random_weights() -> None:
    stream = torch.Generator().manual_seed(0)
    layer = nn.ConvTranspose2d(16, 64, 6, stride=3, bias=False)
    layer.weight.data = torch.randn(layer.weight.shape, generator=stream)
    found = layer_cushions(nn.Sequential(layer), torch.randn(8, 16, 24, 24, generator=stream))
    assert found.random == (0.25,)
    # Of 24² positions those at the edges meet fewer taps: some hundredths.
    torch.testing.assert_close(
        found.cushions.mean(), torch.tensor(0.25, dtype=torch.float64), atol=0.01, rtol=0
    )


class Recurrent(nn.Module):
    """A recurrent layer, attention and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(3, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        x, _ = self.rnn(x)
        x, _ = self.attention(x, x, x, need_weights=False)
        return self.last(torch.relu(self.first(x[:, -1])))


def test_noise_reaches_every_matrix_and_what_needs_units_says_what_is_left_out() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net, x = Recurrent().double(), torch.randn(5, 6, 3, dtype=torch.float64)
    found = weight_noise(net, x, draws=2)
    matrices = ("rnn.weight_ih_l0", "rnn.weight_hh_l0", "attention.in_proj_weight")
    assert found.layers == (*matrices, "attention.out_proj", "first", "last")  # as they are registered
    assert bool((found.change > 0).all())
    assert weight_noise(net, x, draws=2, layers=["rnn"]).layers == matrices[:2]
    # The change is that of the output under W + N with the same N.
    noise = torch.randn(12, 4, generator=torch_generator(0, "weight noise", 0, 0), dtype=torch.float64)
    changed = copy.deepcopy(net)
    weight = changed.rnn.weight_hh_l0
    weight.data += 0.1 * weight.norm() / 48**0.5 * noise
    with torch.no_grad():
        expected = (changed(x) - net(x)).norm() / net(x).norm()
    own = weight_noise(net, x, draws=1, layers=["rnn.weight_hh_l0"])
    torch.testing.assert_close(own.change[0, 0, 0], expected)
    sentence = "left out: rnn (GRU), attention (MultiheadAttention), whose units cannot be followed"
    for measure in (singularities, layer_cushions, permutation_symmetry, rescaling_symmetry):
        assert sentence in repr(measure(net, x)), measure
    assert "left out" not in repr(singularities(net, x, layers=["first"]))
    with pytest.raises(
        Refused, match=r"no Linear or convolution \(but the network \(LSTM\), whose units cannot"
    ):
        singularities(nn.LSTM(3, 4, batch_first=True), x)
    with pytest.raises(Refused, match=r"layer 'rnn.wieght' does not exist"):
        weight_noise(net, x, layers=["rnn.wieght"])
