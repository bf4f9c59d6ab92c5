"""Signals of layers: closed forms, planted defects in the right row, and one answer however samples are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements import layer_sums
from skiplab.measurements.layer_signals import LayerSignals, layer_signals
from skiplab.randomness import torch_generator

CE = nn.CrossEntropyLoss()
X = torch.randn(12, 6, generator=torch_generator("signals"), dtype=torch.float64)
Y = torch.arange(12) % 3
IMAGES = torch.randn(5, 4, 6, 6, generator=torch_generator("signal images"), dtype=torch.float64)
NUMBERS = ("gain", "output", "variation", "gradient", "weight", "zero_weights")


def seeded(build: Callable[[], nn.Module], seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build().double()


def deep(seed: int = 0, depth: int = 4) -> nn.Sequential:
    def build() -> nn.Module:
        layers = [part for _ in range(depth) for part in (nn.Linear(6, 6), nn.Tanh())]
        return nn.Sequential(*layers, nn.Linear(6, 3))

    net = seeded(build, seed)
    assert isinstance(net, nn.Sequential)
    return net


def same(one: LayerSignals, other: LayerSignals, rows: Any = slice(None)) -> None:
    for name in NUMBERS:
        first, second = getattr(one, name), getattr(other, name)
        torch.testing.assert_close(first, second[rows], rtol=1e-9, atol=1e-12, equal_nan=True, msg=name)


def row(found: LayerSignals, layer: str, name: str) -> float:
    return float(getattr(found, name)[0, found.layers.index(layer)])


# Closed forms -----------------------------------------------------------------------------------------------


def test_an_orthonormal_layer_has_gain_one_whatever_its_bias() -> None:
    layer = nn.Linear(6, 6).double()
    nn.init.orthogonal_(layer.weight)
    nn.init.constant_(layer.bias, 100.0)
    found = layer_signals(layer, X)
    assert found.gain.item() == pytest.approx(1.0, rel=1e-9)
    assert found.output.item() > 90
    assert found.weight.item() == pytest.approx(6**-0.5)


def test_the_gain_of_a_linear_layer_on_gaussian_input_is_its_frobenius_norm() -> None:
    x = torch.randn(40_000, 6, generator=torch_generator("gauss"), dtype=torch.float64)
    layer = seeded(lambda: nn.Linear(6, 10))
    found = layer_signals(layer, x)
    expected = layer.weight.norm() / 10**0.5  # E‖Wx‖² = ‖W‖², over 10 outputs and 6 inputs of mean square 1
    assert found.gain.item() == pytest.approx(expected.item(), rel=0.02)


class Conv1D(nn.Module):
    """As transformers has it: x W + b, weights (inputs, units)."""

    def __init__(self) -> None:
        super().__init__()
        self.nf = 5
        self.weight, self.bias = nn.Parameter(torch.randn(6, 5)), nn.Parameter(torch.randn(5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.addmm(self.bias, x, self.weight)


PRODUCTS: dict[str, tuple[Callable[[], nn.Module], Tensor, Callable[[Any, Tensor], Tensor]]] = {
    "linear": (lambda: nn.Linear(6, 5), X, lambda part, x: F.linear(x, part.weight)),
    "without bias": (lambda: nn.Linear(6, 5, bias=False), X, lambda part, x: F.linear(x, part.weight)),
    "Conv1D": (Conv1D, X, lambda part, x: x @ part.weight),
    "convolution": (
        lambda: nn.Conv2d(4, 6, 3, stride=2, groups=2),
        IMAGES,
        lambda part, x: F.conv2d(x, part.weight, stride=2, groups=2),
    ),
    "transposed": (
        lambda: nn.ConvTranspose2d(4, 3, 3, stride=2),
        IMAGES,
        lambda part, x: F.conv_transpose2d(x, part.weight, stride=2),
    ),
    "transposed in groups": (
        lambda: nn.ConvTranspose2d(4, 6, 3, groups=2),
        IMAGES,
        lambda part, x: F.conv_transpose2d(x, part.weight, groups=2),
    ),
}


@pytest.mark.parametrize("kind", PRODUCTS)
def test_numbers_are_those_of_the_definitions(kind: str) -> None:
    build, x, product = PRODUCTS[kind]
    part: Any = seeded(build)

    def loss_fn(model: nn.Module, batch: Tensor) -> Tensor:
        return model(batch).square().mean()

    found = layer_signals(part, x, loss_fn=loss_fn)
    given = part(x)
    loss_fn(part, x).backward()
    rms = {name: value.square().mean().sqrt() for name, value in (("x", x), ("Wx", product(part, x)))}
    expected = {
        "gain": rms["Wx"] / rms["x"],
        "output": given.square().mean().sqrt(),
        "variation": given.var(0, correction=0).sum() / given.square().mean(0).sum(),
        "gradient": part.weight.grad.norm() / part.weight.norm(),
        "weight": part.weight.square().mean().sqrt(),
    }
    for name, value in expected.items():
        assert getattr(found, name).item() == pytest.approx(value.item(), rel=1e-9), name
    assert found.layers == ("",)
    assert found.zero_weights.item() == 0


def test_variation_in_wide_layers_is_that_of_some_entries(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.randn(64, 6, generator=torch_generator("wide"), dtype=torch.float64)
    layer = seeded(lambda: nn.Linear(6, 2000))
    exact = layer_signals(layer, x).variation.item()
    monkeypatch.setattr(layer_sums, "ENTRIES", 500)
    assert layer_signals(layer, x).variation.item() == pytest.approx(exact, rel=0.05)
    cut = layer_signals(layer, iter([x[:10], x[10:]])).variation.item()
    assert cut == pytest.approx(layer_signals(layer, x).variation.item())


# However it is asked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_it_does_not_matter_how_samples_are_cut_into_batches(reduction: str) -> None:
    net, criterion = (
        deep(),
        nn.CrossEntropyLoss(reduction=reduction, weight=torch.tensor([1.0, 2, 5]).double()),
    )
    whole = layer_signals(net, (X, Y), criterion=criterion)
    cut = [(X[a:b], Y[a:b]) for a, b in ((0, 1), (1, 6), (6, 12))]
    same(layer_signals(net, cut, criterion=criterion), whole)
    assert whole.samples == 12


@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("mode", ["eval", "train", "batch"])
def test_members_have_what_they_have_alone(backend: str, mode: str) -> None:
    def build() -> nn.Module:
        return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Dropout(0.5), nn.Linear(5, 3))

    nets = [seeded(build, seed) for seed in range(3)]
    together = layer_signals(Ensemble.of(nets, backend=backend), (X, Y), criterion=CE, mode=mode)
    for place, net in enumerate(nets):
        same(layer_signals(net, (X, Y), criterion=CE, mode=mode), together, slice(place, place + 1))


def test_modes_choose_the_statistics() -> None:
    net = seeded(lambda: nn.Sequential(nn.BatchNorm1d(6), nn.Linear(6, 3)))
    by_mode = {
        mode: layer_signals(net, 5 * X, mode=mode).output.item() for mode in ("eval", "train", "batch")
    }
    assert by_mode["train"] == pytest.approx(by_mode["batch"])
    assert by_mode["eval"] > 3 * by_mode["batch"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_differs_by_rounding(dtype: torch.dtype) -> None:
    low, high = (
        layer_signals(deep().to(kind), (X.to(kind), Y), criterion=CE) for kind in (dtype, torch.float64)
    )
    for name in NUMBERS:
        torch.testing.assert_close(getattr(low, name), getattr(high, name), rtol=0.05, atol=1e-3, msg=name)


def test_names_choose_layers_or_all_inside_a_module() -> None:
    net = nn.Sequential(deep(), nn.Linear(3, 3).double())
    assert layer_signals(net, X, layers=["0"]).layers == ("0.0", "0.2", "0.4", "0.6", "0.8")
    assert layer_signals(net, X, layers=["1"]).layers == ("1",)
    with pytest.raises(Refused, match=r"layer '0\.1' is not called on this batch|no weight layer"):
        layer_signals(net, X, layers=["0.1"])
    with pytest.raises(Refused, match=r"layer '0\.9' does not exist"):
        layer_signals(net, X, layers=["0.9"])


# Any module -------------------------------------------------------------------------------------------------


class Odd(nn.Module):
    """A recurrent layer, attention, a layer called twice, one used by its weights, a parametrised and an idle one."""

    def __init__(self) -> None:
        super().__init__()
        self.recurrent = nn.GRU(6, 4, batch_first=True)
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.twice = nn.Linear(4, 4)
        self.by_weight = nn.Linear(4, 4)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))
        self.idle = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        steps = self.recurrent(x)[0]
        steps = self.attention(steps, steps, steps)[0]
        pooled = self.twice(self.twice(steps.mean(1)))
        return self.normed(F.linear(pooled, self.by_weight.weight))


def test_every_matrix_has_its_gradient_even_where_it_has_no_gain() -> None:
    net, x = seeded(Odd), X.reshape(4, 3, 6)
    found = layer_signals(net, (x, Y[:4]), criterion=CE)
    CE(net(x), Y[:4]).backward()
    inside = ("recurrent.weight_ih_l0", "recurrent.weight_hh_l0", "attention.in_proj_weight")
    for name in inside:
        part, _, key = name.partition(".")
        matrix = getattr(getattr(net, part), key)
        assert row(found, name, "gradient") == pytest.approx((matrix.grad.norm() / matrix.norm()).item())
    assert {*found.opaque} == {*inside, "attention.out_proj", "by_weight"}
    assert found.uncalled == ("idle",)
    assert row(found, "twice", "gradient") == row(found, "twice#2", "gradient") > 0
    assert row(found, "twice", "gain") != row(found, "twice#2", "gain")
    text = repr(found)
    assert "gain and output unknown, since used inside a function: recurrent.weight_ih_l0" in text
    assert "left out, since not called: idle" in text


def test_the_gradient_of_a_parametrised_layer_is_that_of_its_weights() -> None:
    net, x = seeded(Odd), X.reshape(4, 3, 6)
    found = layer_signals(net, (x, Y[:4]), criterion=CE)
    plain = seeded(Odd)
    nn.utils.parametrize.remove_parametrizations(plain.normed, "weight")
    expected = layer_signals(plain, (x, Y[:4]), criterion=CE)
    assert row(found, "normed", "gradient") == pytest.approx(row(expected, "normed", "gradient"))


def test_frozen_layers_have_gradients_too_and_a_detached_network_has_none() -> None:
    net = deep()
    expected = layer_signals(net, (X, Y), criterion=CE).gradient
    assert torch.equal(layer_signals(net.requires_grad_(False), (X, Y), criterion=CE).gradient, expected)
    cut = layer_signals(net, X, loss_fn=lambda model, batch: model(batch).detach().sum())
    assert cut.gradient.tolist() == [[0.0] * 5]


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_layers_are_counted_once_and_reentrant_ones_refused_with_a_loss(reentrant: bool) -> None:
    class Checkpointed(nn.Sequential):
        def forward(self, x: Tensor) -> Tensor:
            return checkpoint(super().forward, x.requires_grad_(), use_reentrant=reentrant)

    plain = deep()
    net = Checkpointed(*plain)
    assert torch.equal(layer_signals(net, X).gain, layer_signals(plain, X).gain)
    if reentrant:
        with pytest.raises(Refused, match="inside reentrant gradient checkpointing"):
            layer_signals(net, (X, Y), criterion=CE)
    else:
        same(layer_signals(net, (X, Y), criterion=CE), layer_signals(plain, (X, Y), criterion=CE))


# Planted defects --------------------------------------------------------------------------------------------


def test_a_layer_with_a_hundred_times_the_gain_is_seen_in_its_row() -> None:
    net = deep()
    healthy = layer_signals(net, (X, Y), criterion=CE)
    net[4].weight.data *= 100
    found = layer_signals(net, (X, Y), criterion=CE)
    ratio = (found.gain / healthy.gain)[0]
    assert found.layers[int(ratio.argmax())] == "4"
    assert ratio[2].item() == pytest.approx(100)
    assert ratio[:2].tolist() == [1.0, 1.0]


def test_a_zero_head_is_all_zeros_and_cuts_the_gradient_of_all_before() -> None:
    net = deep()
    nn.init.zeros_(net[8].weight)
    found = layer_signals(net, (X, Y), criterion=CE)
    assert found.zero_weights.tolist() == [[0.0] * 4 + [1.0]]
    assert found.gain[0, -1].item() == 0
    assert found.gradient[0, :-1].tolist() == [0.0] * 4
    assert found.gradient[0, -1].item() == torch.inf
    assert found.variation[0, -1].item() == 0


def test_a_dead_layer_says_the_same_of_every_sample_from_there_on() -> None:
    net = nn.Sequential(
        *[part for _ in range(4) for part in (nn.Linear(6, 6), nn.ReLU())], nn.Linear(6, 3)
    ).double()
    nn.init.constant_(net[2].bias, -1e3)
    found = layer_signals(net, (X, Y), criterion=CE)
    assert (found.variation[0] > 0).tolist() == [True, True, False, False, False]
    assert found.gradient[0, :3].tolist() == [0.0] * 3


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_answered_and_placed(value: float) -> None:
    nets = [deep(seed) for seed in range(2)]
    nets[1][4].bias.data[1] = value
    found = layer_signals(nets[1], (X, Y), criterion=CE)
    assert found.first_not_finite == ("4",)
    assert found.output.isfinite().tolist() == [[True, True, False, value == torch.inf, value == torch.inf]]
    assert "not finite, first in 4" in repr(found)
    both = layer_signals(Ensemble.of(nets), (X, Y), criterion=CE)
    assert both.first_not_finite == ("", "4")
    assert "not finite in 1 of 2 networks, first in 4" in repr(both)


def test_a_loss_that_is_not_finite_is_named_and_leaves_no_gradient() -> None:
    found = layer_signals(deep(), X, loss_fn=lambda model, batch: (model(batch) * 0).sum().log() - torch.inf)
    assert found.first_not_finite == ("the loss",)
    assert bool(found.gradient.isnan().all())
    assert bool(found.gain.isfinite().all())


def test_a_network_without_weights_is_refused() -> None:
    with pytest.raises(Refused, match="there is no weight layer to look at"):
        layer_signals(nn.Sequential(nn.Embedding(5, 3)), torch.arange(4))
