"""Patterns by hand, coactivation against a double loop, contiguity against groupby, ensembles against members."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.activations import CReLU
from skiplab.architectures.rescaled import RescaledNet
from skiplab.architectures.resnet import ResNet
from skiplab.architectures.shattering_convnets import ShatteringConvNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.activation_patterns import ActivationPatterns, activation_patterns, run_lengths
from skiplab.measurements.saturation import saturation
from skiplab.randomness import torch_generator

GRID = torch.linspace(-2, 2, 9, dtype=torch.float64)[:, None]
# Its mean is none of its points: a normalised field would be 0 up to rounding there.
OFF_CENTRE = GRID + GRID.square() / 10


def coins(*shape: int) -> Tensor:
    return torch.rand(*shape, generator=torch_generator("coins")) < 0.5


def grid_net(seed: int, depth: int = 3) -> nn.Module:
    stream = torch_generator(seed, "net")
    return RescaledNet(1, 8, depth, 1, generator=stream, normalisation="batch", dtype=torch.float64)


def test_units_are_active_where_their_field_is_positive() -> None:
    net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(inplace=True), nn.Linear(3, 1)).double()
    with torch.no_grad():
        net[0].weight.copy_(torch.tensor([[1.0], [-1.0], [0.0]]))
        net[0].bias.copy_(torch.tensor([0.25, 0.25, -1.0]))
    found = activation_patterns(net, GRID)
    x = GRID[:, 0]
    assert found.layers == ("1",)
    assert torch.equal(found.active["1"][0], torch.stack([x > -0.25, x < 0.25, x > 9], 1))
    # −.25 < 0, .5, 1, 1.5, 2: active for 5 of 9 points, and for 20 of 72 ordered pairs; the third unit is dead.
    assert found.per_unit("1")[0].tolist() == pytest.approx([5 / 9, 5 / 9, 0])
    assert found.activation.item() == pytest.approx(10 / 27)
    assert found.coactivation.item() == pytest.approx(2 / 3 * 20 / 72)
    assert [lengths.tolist() for lengths in found.contiguity(0)] == [[4, 5, 5, 4, 9]]
    assert found.contiguity_counts(0).tolist() == [[0, 0, 0, 2, 2, 0, 0, 0, 1]]
    assert torch.equal(found.raster("1"), found.active["1"].mT)


def test_coactivation_against_a_double_loop() -> None:
    patterns = {"one": coins(2, 7, 5), "two": coins(2, 7, 3)}
    found = ActivationPatterns(patterns, samples=7)
    for column, active in enumerate(patterns.values()):
        for member, pattern in enumerate(active):
            units = pattern.shape[1]
            both = [
                bool(pattern[i, unit] and pattern[j, unit])
                for unit in range(units)
                for i in range(7)
                for j in range(7)
                if i != j
            ]
            assert found.coactivation[member, column].item() == pytest.approx(sum(both) / len(both))


def test_contiguity_against_groupby() -> None:
    rows = torch.cat(
        [coins(6, 11), torch.ones(1, 11, dtype=torch.bool), torch.zeros(1, 11, dtype=torch.bool)]
    )
    by_hand = [len(list(run)) for row in rows.tolist() for _, run in itertools.groupby(row)]
    assert run_lengths(rows).tolist() == by_hand
    found = ActivationPatterns({"only": rows.mT[None].expand(2, -1, -1)}, samples=11)
    for lengths, counts in zip(found.contiguity("only"), found.contiguity_counts("only"), strict=True):
        assert lengths.tolist() == by_hand
        assert counts.tolist() == [by_hand.count(length) for length in range(1, 12)]


def test_coin_flips_are_half_active_a_quarter_coactive_and_change_every_other_time() -> None:
    found = ActivationPatterns({"coins": coins(1, 400, 500)}, samples=400)
    assert found.activation.item() == pytest.approx(0.5, abs=4 * 0.5 / (400 * 500) ** 0.5)
    assert found.coactivation.item() == pytest.approx(0.25, abs=4 * 0.5 / (400 * 500) ** 0.5)
    assert found.contiguity(0)[0].double().mean().item() == pytest.approx(2, rel=0.02)


@pytest.mark.parametrize("mode", ["eval", "batch"])
def test_an_ensemble_equals_its_members(mode: str) -> None:
    def image_net(seed: int) -> nn.Module:
        return ShatteringConvNet(4, generator=torch_generator(seed, "net"), filters=4, dtype=torch.float64)

    images = torch.randn(5, 3, 6, 6, generator=torch_generator("images"), dtype=torch.float64)
    for build, x, units in ((grid_net, OFF_CENTRE, 8), (image_net, images, 4 * 36)):
        nets = [build(seed) for seed in range(3)]
        alone = [activation_patterns(net, x, mode=mode) for net in nets]
        for backend in ("batched", "loop"):
            found = activation_patterns(Ensemble.of(nets, backend=backend), x, mode=mode)
            assert found.layers == alone[0].layers
            assert len(found.layers) >= 3
            for name, pattern in found.active.items():
                assert pattern.shape == (3, len(x), units)
                assert torch.equal(pattern, torch.cat([each.active[name] for each in alone]))


def test_batch_statistics_are_those_of_training_mode() -> None:
    net = grid_net(0).train()
    seen = []
    for block in net.blocks:
        block.activation.register_forward_hook(lambda _, __, output: seen.append(output > 0))
    net(OFF_CENTRE)
    found = activation_patterns(net, (OFF_CENTRE, None), mode="batch")
    running = activation_patterns(net, {"x": OFF_CENTRE, "labels": OFF_CENTRE})
    assert [torch.equal(found.active[f"blocks.{k}.activation"][0], seen[k]) for k in range(3)] == [True] * 3
    assert not torch.equal(found.activation, running.activation)


class Shared(nn.Module):
    """One rectifier called twice, registered before the layers it follows, and one that is never called."""

    def __init__(self) -> None:
        super().__init__()
        self.relu, self.idle = nn.ReLU(), nn.ReLU()
        self.first, self.second, self.halves = nn.Linear(1, 4), nn.Linear(4, 2), CReLU()

    def forward(self, x: Tensor) -> Tensor:
        return self.halves(self.relu(self.second(self.relu(self.first(x)))) - 0.1)


def test_layers_are_found_in_the_order_of_their_calls() -> None:
    x = GRID.float()
    found = activation_patterns(Shared(), x)
    assert found.layers == ("relu", "relu#2", "halves")
    assert [found[layer].shape[2] for layer in range(3)] == [4, 2, 4]
    halves = found["halves"].chunk(2, 2)
    assert not (halves[0] & halves[1]).any()  # a CReLU's units exclude each other
    assert torch.equal(halves[0] | halves[1], torch.ones_like(halves[0]))
    net = Shared()
    some = activation_patterns(net, x, layers=["first"])
    assert torch.equal(some["first"][0], net.first(x) > 0)


def test_a_layer_of_one_unit_may_return_one_number_a_sample() -> None:
    net = nn.Sequential(nn.Linear(1, 1), nn.Flatten(0), nn.ReLU()).double()
    found = activation_patterns(net, GRID)
    assert torch.equal(found["2"][0], net[0](GRID) > 0)


@pytest.mark.parametrize(
    "rectifier",
    [
        lambda: nn.LeakyReLU(-1.0),
        lambda: nn.LeakyReLU(-0.5, inplace=True),
        lambda: nn.PReLU(3, init=-1.0),
        lambda: nn.RReLU(-1.0, -0.5),
        lambda: nn.ELU(-2.0),
        nn.CELU,
        nn.GELU,
        nn.Hardswish,
    ],
)
def test_a_rectifier_is_active_by_what_it_takes(rectifier: Callable[[], nn.Module]) -> None:
    net = nn.Sequential(nn.Linear(1, 3), rectifier()).double()
    found = activation_patterns(net, GRID)
    assert torch.equal(found["1"][0], net[0](GRID) > 0)
    nets = [nn.Sequential(nn.Linear(1, 3), rectifier()).double() for _ in range(2)]
    both = activation_patterns(Ensemble.of(nets, backend="loop"), GRID)
    for member, each in enumerate(nets):
        assert torch.equal(both["1"][member], each[0](GRID) > 0)


class Calls(nn.Module):
    """Rectifiers as functions: one called twice, and between the calls what ``function`` does."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.inner, self.last = nn.ModuleDict({"first": nn.Linear(1, 4), "act": nn.ReLU()}), nn.Linear(4, 2)
        self.between = function

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.inner["first"](x))
        x = self.inner["act"](self.between(x - 0.1))
        return torch.relu(self.last(x))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (torch.relu, "relu#2"),
        (lambda x: x.relu(), "relu#2"),
        (lambda x: F.relu(x, inplace=True), "relu#2"),
        (lambda x: x.clone().relu_(), "relu#2"),
        (lambda x: x.clamp_min(0), "clamp_min"),
        (lambda x: x.clamp(min=0.0), "clamp"),
        (lambda x: torch.clip(x, 0, 6), "clip"),
        (lambda x: F.hardtanh(x, 0, 6), "hardtanh"),
        (lambda x: F.threshold(x, 0, 0), "threshold"),
        (F.silu, "silu"),
        (lambda x: F.leaky_relu(x, -0.5), "leaky_relu"),
    ],
)
def test_rectifiers_that_are_called_as_functions_count_as_modules_do(
    function: Callable[[Tensor], Tensor], name: str
) -> None:
    x = GRID.float()
    net = Calls(function)
    found = activation_patterns(net, x)
    again = "relu#3" if name == "relu#2" else "relu#2"
    assert found.layers == ("relu", name, "inner.act", again)
    first = net.inner["first"](x)
    assert torch.equal(found["relu"][0], first > 0)
    assert torch.equal(found[name][0], first.relu() - 0.1 > 0)
    assert torch.equal(found[again][0], net.last(function(first.relu() - 0.1).relu()) > 0)
    assert not found.left_out
    # Saturation names them alike: it is one rule.
    assert [place for place in saturation(net, x).layers if place != "inner.act"] == [
        *found.layers[:2],
        again,
    ]
    for backend in ("batched", "loop"):
        nets = [Calls(function) for _ in range(2)]
        many = activation_patterns(Ensemble.of(nets, backend=backend), x)
        for member, each in enumerate(nets):
            for layer, pattern in activation_patterns(each, x).active.items():
                assert torch.equal(many[layer][member], pattern[0])


@pytest.mark.parametrize(
    "function",
    [torch.tanh, lambda x: x.clamp_min(-1), lambda x: x.clamp(max=0), lambda x: x.clamp(0, 0), F.hardtanh],
)
def test_what_is_no_rectifier_is_not_counted(function: Callable[[Tensor], Tensor]) -> None:
    assert activation_patterns(Calls(function), GRID.float()).layers == ("relu", "inner.act", "relu#2")


def test_functions_are_named_by_the_module_whose_forward_calls_them() -> None:
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, x: Tensor) -> Tensor:
            return x + F.relu(self.linear(F.relu(x)))

    net, x = nn.Sequential(nn.Linear(1, 4), Block(), Block()), GRID.float()
    found = activation_patterns(net, x)
    assert found.layers == ("1: relu", "1: relu#2", "2: relu", "2: relu#2")
    some = activation_patterns(net, x, layers=["2: relu", "2"])  # a function, and what the module gives
    assert some.layers == ("2: relu", "2: relu#2", "2")
    assert torch.equal(some["2: relu#2"], found["2: relu#2"])
    assert torch.equal(some["2"][0], net(x) > 0)


def test_every_rectifier_of_our_residual_network_is_measured() -> None:
    net = ResNet(1, generator=torch_generator("resnet"), filters=(4, 8, 8), dtype=torch.float64)
    images = torch.randn(5, 3, 8, 8, generator=torch_generator("images"), dtype=torch.float64)
    assert len(activation_patterns(net, images).layers) == 7  # it was one, the stem's


def test_what_is_left_out_is_said() -> None:
    class Several(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act, self.idle, self.first = nn.ReLU(), nn.ReLU(), nn.Linear(1, 3)
            self.memory = nn.RNN(3, 3, nonlinearity="relu", batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            x = self.act(self.first(x))
            return self.memory(x[:, None])[0][:, 0] * F.relu(x.flatten()).mean()

    found = activation_patterns(Several(), GRID.float())
    assert found.layers == ("act",)
    said = (
        "left out: memory, whose rectifiers are inside one call to torch; relu, without a sample a row; "
        "idle, which the pass does not call"
    )
    assert f"  {said}\n" in repr(found)
    assert "left out" not in repr(activation_patterns(Several(), GRID.float(), layers=["act"]))


def test_a_pass_that_cannot_be_followed_is_measured_by_its_modules() -> None:
    class Plain(nn.Module):
        """Code of another library that takes plain tensors alone."""

        def forward(self, x: Tensor) -> Tensor:
            if type(x) is not Tensor:
                raise TypeError("no subclass")
            return F.relu(x)

    class Escapes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.from_numpy(x.numpy().copy())

    for part, why in (
        (Plain(), "since the pass fails while it is followed"),
        (Escapes(), "where the pass could not be followed"),
    ):
        part.register_buffer("own", torch.zeros(1))
        net = nn.Sequential(nn.Linear(1, 3), nn.ReLU(), part)
        found = activation_patterns(net, GRID.float())
        assert found.layers == ("1",)
        assert torch.equal(found["1"][0], net[0](GRID.float()) > 0)
        assert f"left out: rectifiers that are called as functions, {why}" in repr(found)
        with pytest.raises(Refused, match=f"no rectifier on this batch that can be seen .*, {why}"):
            activation_patterns(nn.Sequential(nn.Linear(1, 3), part), GRID.float())


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_a_diverged_network_is_refused_and_a_diverged_member_has_nan(backend: str) -> None:
    nets = [nn.Sequential(nn.Linear(1, 3), nn.ReLU(), nn.Linear(3, 3), nn.ReLU()).double() for _ in range(2)]
    alone = activation_patterns(nets[0], GRID)
    nets[1][2].weight.data[0, 0] = torch.nan
    sentence = "layer '{}' meets a number that is not finite; look for diverged parameters or inputs"
    with pytest.raises(Refused, match=sentence.format(3)):
        activation_patterns(nets[1], GRID)
    for bad in (torch.nan, torch.inf):
        with pytest.raises(Refused, match=sentence.format(1)):
            activation_patterns(nets[0], GRID * bad)
    found = activation_patterns(Ensemble.of(nets, backend=backend), GRID)
    for name in ("activation", "coactivation"):
        assert torch.equal(getattr(found, name)[:1], getattr(alone, name))
        assert getattr(found, name)[1].isnan().all()
    assert found.per_unit(0)[1].isnan().all()
    assert [len(lengths) > 0 for lengths in found.contiguity(0)] == [True, False]
    assert found.contiguity_counts(1)[1].sum() == 0
    one = activation_patterns(Ensemble.of(nets[1:]), GRID)  # an ensemble of one is not a network by itself
    assert one.activation.isnan().all()


def test_one_sample_makes_no_pair() -> None:
    found = activation_patterns(grid_net(0), GRID[:1])
    assert found.activation.isfinite().all()
    assert found.coactivation.isnan().all()


def test_what_is_refused() -> None:
    x = GRID.float()
    sentence = (
        "the network calls no rectifier on this batch; name in layers the modules whose positive outputs"
    )
    with pytest.raises(Refused, match=sentence):
        activation_patterns(nn.Sequential(nn.Linear(1, 3), nn.Tanh()), x)
    with pytest.raises(Refused, match="layer 'first: relu' is not called on this batch"):
        activation_patterns(Shared(), x, layers=["first: relu"])
    with pytest.raises(Refused, match="layer 'first: tanh' does not exist"):
        activation_patterns(Shared(), x, layers=["first: tanh"])
    with pytest.raises(Refused, match=r"layer 'secnd' does not exist.*Did you mean second"):
        activation_patterns(Shared(), x, layers=["secnd"])
    with pytest.raises(Refused, match="layer 'idle' is not called on this batch"):
        activation_patterns(Shared(), x, layers=["idle"])
    with pytest.raises(Refused, match=r"layers is 'relu', but must be a list of names: \['relu'\]"):
        activation_patterns(Shared(), x, layers="relu")
    with pytest.raises(Refused, match="the batches hold no sample; pass a batch with at least one"):
        activation_patterns(Shared(), x[:0])
    with pytest.raises(
        Refused, match="the batches run different layers or units; name common ones in layers"
    ):
        activation_patterns(nn.ReLU(), iter([x, torch.ones(2, 5)]))
    with pytest.raises(Refused, match="layers is empty; name a layer"):
        activation_patterns(Shared(), x, layers=[])
    with pytest.raises(Refused, match="mode 'moving' is unknown; choose one of eval, batch"):
        activation_patterns(Shared(), x, mode="moving")
    turned = nn.Sequential(nn.Linear(1, 3), nn.Flatten(0), nn.ReLU())
    with pytest.raises(Refused, match=r"layer '2' has \(27,\) for 9 samples; choose one with a sample a row"):
        activation_patterns(turned, x)
    found = activation_patterns(Shared(), x)
    with pytest.raises(Refused, match=r"layer 'haves' was not measured\. Did you mean halves"):
        found.per_unit("haves")
    with pytest.raises(Refused, match="layer number 3 does not exist; there are 3"):
        found.raster(3)


def test_inputs_in_several_batches_are_inputs_in_one() -> None:
    net, x = nn.Sequential(nn.Linear(1, 5), nn.ReLU(), nn.Linear(5, 2)), GRID.float()
    whole, parts = activation_patterns(net, x), activation_patterns(net, iter([x[:4], x[4:]]))
    assert torch.equal(whole["1"], parts["1"])
    assert parts.samples == whole.samples == len(x)
