"""Saturated activations: known shares, units that never answer, functions as well as modules, and attention."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.activation_watcher import FLAT
from skiplab.measurements.saturation import Saturation, saturation
from skiplab.randomness import torch_generator

X = torch.randn(12, 6, generator=torch_generator("saturation"), dtype=torch.float64)
LINE = torch.linspace(-10, 10, 20_001, dtype=torch.float64)[:, None]


class Calls(nn.Module):
    """Does what it is told to in its forward."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.scale * x)


def row(found: Saturation, name: str, quantity: str = "saturated") -> float:
    return float(getattr(found, quantity)[0, found.layers.index(name)])


# Bounded ----------------------------------------------------------------------------------------------------

EDGES = {  # |x| from which on the slope is below FLAT of the largest
    "tanh": (nn.Tanh(), torch.tanh, math.acosh(FLAT**-0.5)),
    "sigmoid": (nn.Sigmoid(), torch.sigmoid, 2 * math.acosh(FLAT**-0.5)),
    "softsign": (nn.Softsign(), F.softsign, FLAT**-0.5 - 1),
    "hardtanh": (nn.Hardtanh(-2.0, 2.0), lambda x: F.hardtanh(x, -2.0, max_val=2.0), 2.0),
    "hardsigmoid": (nn.Hardsigmoid(), F.hardsigmoid, 3.0),
}


@pytest.mark.parametrize("name", EDGES)
def test_the_share_of_uniform_inputs_is_that_beyond_the_edges(name: str) -> None:
    part, function, edge = EDGES[name]
    found = saturation(nn.Sequential(part, Calls(function)), LINE, layers=["0"])
    assert found.kinds == ("bounded",)
    assert found.saturated.item() == pytest.approx(1 - edge / 10, abs=2e-4)
    called = saturation(nn.Sequential(Calls(function)), LINE)
    assert called.layers == (f"0: {name}",)
    assert called.saturated.item() == pytest.approx(1 - edge / 10, abs=2e-4)
    assert bool(called.never_active.isnan().all())


@pytest.mark.parametrize("name", EDGES)
def test_the_edges_are_where_autograd_has_the_slope(name: str) -> None:
    _, function, edge = EDGES[name]
    places = torch.tensor([0.0, edge * 0.999, edge * 1.001], dtype=torch.float64, requires_grad=True)
    (slopes,) = torch.autograd.grad(function(places).sum(), places)
    assert slopes[1] > FLAT * slopes[0] > slopes[2]


# Rectifiers -------------------------------------------------------------------------------------------------


def test_units_that_are_never_or_always_active_are_counted() -> None:
    net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(inplace=True), nn.Linear(8, 2)).double()
    net[0].bias.data[:2] = -100
    net[0].bias.data[2:5] = 100
    found = saturation(net, X)
    assert found.kinds == ("rectifier",)
    assert (row(found, "1", "never_active"), row(found, "1", "always_active")) == (2 / 8, 3 / 8)
    assert bool(found.saturated.isnan())


def test_a_channel_is_one_unit_over_positions_wherever_its_axis_is() -> None:
    class Last(nn.Module):
        """Channels last, as in ConvNeXt."""

        def __init__(self) -> None:
            super().__init__()
            self.stem, self.mixing = nn.Conv2d(3, 4, 1), nn.Linear(4, 10)

        def forward(self, x: Tensor) -> Tensor:
            maps = F.relu(self.stem(x))
            return F.gelu(self.mixing(maps.permute(0, 2, 3, 1)))

    net = Last()
    nn.init.zeros_(net.stem.weight)
    nn.init.constant_(net.stem.bias, 1.0)
    net.stem.bias.data[0] = -1.0
    net.stem.weight.data[0, 0] = 1.0  # channel 0 is x − 1, active where x > 1
    nn.init.constant_(net.mixing.bias, -50.0)
    net.mixing.bias.data[:4] = 50.0
    x = torch.zeros(2, 3, 7, 7)
    found = saturation(net, x)
    assert found.layers == ("relu", "gelu")
    assert found.never_active.tolist() == [[1 / 4, 6 / 10]]
    assert found.always_active.tolist() == [[3 / 4, 4 / 10]]
    x[1, 0, 6, 6] = 2.0  # one position of one sample
    found = saturation(net, x)
    assert found.never_active[0, 0].item() == 0
    assert found.always_active[0, 0].item() == 3 / 4


class WrittenOut(nn.Module):
    """GELU as transformers writes it out; its tanh is no activation of its own."""

    def forward(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def test_a_module_that_acts_as_a_rectifier_is_one_as_a_whole() -> None:
    net = nn.Sequential(nn.Linear(6, 8), WrittenOut(), nn.ReLU6(), nn.Linear(8, 1), nn.PReLU()).double()
    net[0].bias.data[0] = -100
    found = saturation(net, X)
    assert found.layers == ("1", "2", "4")
    assert found.kinds == ("rectifier",) * 3
    assert row(found, "1", "never_active") == 1 / 8


# Softmax ----------------------------------------------------------------------------------------------------


def scores(rows: list[list[float]]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def test_rows_of_a_softmax_that_choose_one_entry_are_counted() -> None:
    x = scores([[0, 0, 0], [9, 0, 0], [5, 0, 0], [-torch.inf, 3, -torch.inf]])
    for function in (lambda x: x.softmax(1), lambda x: F.log_softmax(x, dim=-1)):
        found = saturation(nn.Sequential(Calls(function)), x)
        assert found.kinds == ("softmax",)
        # exp 5 / (exp 5 + 2) is .987; the last row has one entry that is not masked.
        assert found.saturated.item() == pytest.approx(1 / 3)


def attended(x: Tensor, *, causal: bool, mask: Tensor | None = None) -> Tensor:
    return F.scaled_dot_product_attention(x, x, x, attn_mask=mask, is_causal=causal)


@pytest.mark.parametrize("how", ["causal", "mask", "added"])
def test_fused_attention_is_as_attention_written_out(how: str) -> None:
    x = 6 * torch.randn(3, 2, 5, 4, generator=torch_generator("heads"), dtype=torch.float64)
    seen = torch.ones(5, 5, dtype=torch.bool).tril()
    added = torch.zeros(5, 5, dtype=torch.float64).masked_fill(~seen, -torch.inf)
    masks: dict[str, dict[str, Any]] = {
        "causal": {"causal": True},
        "mask": {"causal": False, "mask": seen},
        "added": {"causal": False, "mask": added},
    }

    def written_out(x: Tensor) -> Tensor:
        return (x @ x.mT / 2 + added).softmax(-1) @ x

    fused = saturation(nn.Sequential(Calls(lambda x: attended(x, **masks[how]))), x)
    plain = saturation(nn.Sequential(Calls(written_out)), x)
    assert fused.layers == ("0: scaled_dot_product_attention",)
    assert 0 < fused.saturated.item() == plain.saturated.item() < 1


def test_heads_of_an_attention_module_are_looked_at_with_their_masks() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.heads = nn.MultiheadAttention(6, 1, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            mask = torch.ones(3, 3, dtype=torch.bool).triu(1)
            return self.heads(x, x, x, attn_mask=mask, need_weights=False)[0]

    net, x = Attention().double(), X.reshape(4, 3, 6)
    assert saturation(net, x).saturated.item() == 0
    net.heads.in_proj_weight.data *= 1000
    found = saturation(net, x)
    assert found.layers == ("heads: multi_head_attention_forward",)
    assert found.saturated.item() > 0.9


# However it is asked ----------------------------------------------------------------------------------------


def mixed(seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        parts = [nn.Linear(6, 9), nn.ReLU(), nn.BatchNorm1d(9), nn.Linear(9, 9), nn.Tanh(), nn.Softmax(1)]
        net = nn.Sequential(*parts).double()
    net[3].weight.data *= 5
    return net


def same(one: Saturation, other: Saturation, rows: Any = slice(None)) -> None:
    for name in ("saturated", "never_active", "always_active"):
        assert torch.equal(getattr(one, name).nan_to_num(-1), getattr(other, name)[rows].nan_to_num(-1)), name


def test_it_does_not_matter_how_samples_are_cut_into_batches() -> None:
    same(saturation(mixed(), iter([X[:1], X[1:5], X[5:]])), saturation(mixed(), X))


@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("mode", ["eval", "train", "batch"])
def test_members_have_what_they_have_alone(backend: str, mode: str) -> None:
    nets = [mixed(seed) for seed in range(3)]
    together = saturation(Ensemble.of(nets, backend=backend), X, mode=mode)
    assert together.kinds == ("rectifier", "bounded", "softmax")
    for place, net in enumerate(nets):
        same(saturation(net, X, mode=mode), together, slice(place, place + 1))


def test_the_table_names_kinds_and_a_second_call_has_a_number() -> None:
    tanh = nn.Tanh()
    found = saturation(nn.Sequential(nn.Linear(6, 6), tanh, nn.Linear(6, 6), tanh).double(), X)
    assert found.frame()["activation"].tolist() == ["1", "1#2"]
    assert found.frame()["kind"].tolist() == ["bounded", "bounded"]
    assert "bounded × 2" in repr(found)


def test_a_saturated_layer_is_found_in_its_row() -> None:
    parts = [part for _ in range(5) for part in (nn.Linear(6, 6), nn.Tanh())]
    net = nn.Sequential(*parts).double()
    net[4].weight.data *= 100
    found = saturation(net, X)
    assert found.layers[int(found.saturated.argmax())] == "5"
    assert row(found, "5") > 0.7
    assert row(found, "3") == 0


def test_numbers_that_are_not_finite_are_answered_and_placed() -> None:
    nets = [mixed(0), mixed(1)]
    nets[1][0].weight.data[0, 0] = torch.nan
    found = saturation(nets[1], X)
    assert found.first_not_finite == ("0",)
    assert bool(found.saturated.isnan().all() & found.never_active.isnan().all())
    assert "not finite, first in 0" in repr(found)
    both = saturation(Ensemble.of(nets), X)
    assert both.first_not_finite == ("", "0")
    assert bool(both.never_active[0, 0].isfinite())


# Gates ------------------------------------------------------------------------------------------------------


class Remembering(nn.Module):
    """A recurrent layer with large weights, given rows of several lengths where ``lengths`` says so."""

    def __init__(self, kind: type[nn.RNNBase], lengths: list[int] | None = None, **options: Any) -> None:
        super().__init__()
        self.memory = kind(6, 4, **options)
        self.lengths = lengths
        stream = torch_generator("remembering")
        for tensor in self.memory.parameters():
            tensor.data = 2 * torch.randn(tensor.shape, generator=stream, dtype=torch.float64)

    def forward(self, x: Tensor) -> Tensor:
        if self.lengths is None:
            return self.memory(x)[0]
        packed = pack_padded_sequence(x, self.lengths, self.memory.batch_first, enforce_sorted=False)
        return self.memory(packed)[0].data


def by_hand(layer: nn.RNNBase, x: Tensor, suffix: str) -> tuple[dict[str, list[Tensor]], Tensor]:
    """What the gates give at all steps of one sample, (steps, inputs), and what the layer returns."""
    own = {
        name.removesuffix(suffix): each for name, each in layer.named_parameters() if name.endswith(suffix)
    }
    size = layer.hidden_size
    h = torch.zeros(getattr(layer, "proj_size", 0) or size, dtype=torch.float64)
    c = torch.zeros(size, dtype=torch.float64)
    found: dict[str, list[Tensor]] = {}
    steps = []
    for row in x:
        a = own["weight_ih_"] @ row + own.get("bias_ih_", torch.zeros(1, dtype=torch.float64))
        b = own["weight_hh_"] @ h + own.get("bias_hh_", torch.zeros(1, dtype=torch.float64))
        first, second, third, last = (slice(k * size, (k + 1) * size) for k in range(4))
        if isinstance(layer, nn.LSTM):
            values = {
                "input gate": torch.sigmoid(a[first] + b[first]),
                "forget gate": torch.sigmoid(a[second] + b[second]),
                "candidate": torch.tanh(a[third] + b[third]),
                "output gate": torch.sigmoid(a[last] + b[last]),
            }
            c = values["forget gate"] * c + values["input gate"] * values["candidate"]
            values["cell"] = torch.tanh(c)
            h = values["output gate"] * values["cell"]
            h = own["weight_hr_"] @ h if "weight_hr_" in own else h
        elif isinstance(layer, nn.GRU):
            reset, update = torch.sigmoid(a[first] + b[first]), torch.sigmoid(a[second] + b[second])
            values = {"reset gate": reset, "update gate": update}
            values["candidate"] = torch.tanh(a[third] + reset * b[third])
            h = (1 - update) * values["candidate"] + update * h
        else:
            h = torch.tanh(a + b)
            values = {"hidden": h}
        for name, value in values.items():
            found.setdefault(name, []).append(value)
        steps.append(h)
    return found, torch.stack(steps)


LAYERS: dict[str, tuple[type[nn.RNNBase], dict[str, Any]]] = {
    "lstm": (nn.LSTM, {"batch_first": True}),
    "lstm-deep-both-ways": (nn.LSTM, {"num_layers": 2, "bidirectional": True}),
    "lstm-projected": (nn.LSTM, {"proj_size": 2, "bias": False, "num_layers": 2}),
    "gru": (nn.GRU, {"batch_first": True}),
    "gru-deep-both-ways": (nn.GRU, {"num_layers": 2, "bidirectional": True, "batch_first": True}),
    "gru-unbiased": (nn.GRU, {"bias": False}),
    "rnn": (nn.RNN, {"bidirectional": True}),
}


@pytest.mark.parametrize("lengths", [None, [3, 5, 1, 4]], ids=["whole", "packed"])
@pytest.mark.parametrize("name", LAYERS)
def test_gates_inside_a_recurrent_layer_are_those_of_a_loop_by_hand(
    name: str, lengths: list[int] | None
) -> None:
    kind, options = LAYERS[name]
    net = Remembering(kind, lengths, **options)
    rows = torch.randn(4, 5, 6, generator=torch_generator("rows"), dtype=torch.float64)
    x = rows if net.memory.batch_first else rows.transpose(0, 1)
    values: dict[str, list[Tensor]] = {}
    answers = []
    for sample, length in zip(rows, lengths or [5] * 4, strict=True):
        given = sample[:length]
        for layer in range(net.memory.num_layers):
            ways = []
            for suffix in (f"l{layer}", f"l{layer}_reverse")[: 1 + net.memory.bidirectional]:
                turned = given.flip(0) if "reverse" in suffix else given
                found, out = by_hand(net.memory, turned, suffix)
                ways.append(out.flip(0) if "reverse" in suffix else out)
                for gate, each in found.items():
                    values.setdefault(f"{gate} {suffix.replace('_', ' ')}", []).extend(each)
            given = torch.cat(ways, 1)
        answers.append(given)
    answer = net(x)
    if lengths is None:  # the loop computes what the layer computes
        torch.testing.assert_close(torch.stack(answers, 0 if net.memory.batch_first else 1), answer)
    else:
        torch.testing.assert_close(torch.cat(answers).sum(), answer.sum())
    found = saturation(net, x)
    single = net.memory.num_layers * (1 + net.memory.bidirectional) == 1
    shares = {}
    for gate, each in values.items():
        y = torch.stack(each)
        is_sigmoid = "gate" in gate
        slope = 4 * y * (1 - y) if is_sigmoid else 1 - y**2
        place = gate.removesuffix(" l0") if single else gate
        shares[f"memory: {place}, {'sigmoid' if is_sigmoid else 'tanh'}"] = float(
            (slope < FLAT).double().mean()
        )
    assert set(found.layers) == set(shares)
    assert {place: row(found, place) for place in shares} == pytest.approx(shares, abs=1e-12)
    assert max(shares.values()) > 0.1
    assert set(found.behind) == {"memory"}


class Stepping(nn.Module):
    """A cell that is called once per step."""

    def __init__(self, layer: nn.RNNBase, cell: nn.RNNCellBase) -> None:
        super().__init__()
        self.memory = cell.double()
        for key in ("weight_ih", "weight_hh", "bias_ih", "bias_hh"):
            getattr(cell, key).data.copy_(getattr(layer, f"{key}_l0"))

    def forward(self, x: Tensor) -> Tensor:
        state = None
        for step in x.unbind(1):
            state = self.memory(step, state)
        return state[0] if isinstance(state, tuple) else state


@pytest.mark.parametrize(
    ("kind", "cell"), [(nn.LSTM, nn.LSTMCell), (nn.GRU, nn.GRUCell), (nn.RNN, nn.RNNCell)]
)
def test_a_cell_has_one_row_for_all_its_steps_as_its_layer_has(kind: Any, cell: Any) -> None:
    net = Remembering(kind, batch_first=True)
    x = torch.randn(4, 5, 6, generator=torch_generator("rows"), dtype=torch.float64)
    layer, steps = saturation(net, x), saturation(Stepping(net.memory, cell(6, 4)), x)
    assert steps.layers == layer.layers
    torch.testing.assert_close(steps.saturated, layer.saturated)


def test_a_recurrent_layer_of_rectifiers_has_units_that_are_never_active() -> None:
    net = Remembering(nn.RNN, nonlinearity="relu")
    net.memory.bias_ih_l0.data[1] = -1e6
    found = saturation(net, torch.randn(5, 4, 6, generator=torch_generator("rows"), dtype=torch.float64))
    assert (found.layers, found.kinds) == (("memory: hidden, relu",), ("rectifier",))
    assert row(found, "memory: hidden, relu", "never_active") >= 1 / 4


def test_layers_behind_dropout_are_said_to_be_left_out() -> None:
    net = Remembering(nn.LSTM, num_layers=2, dropout=0.5)
    x = torch.randn(5, 4, 6, generator=torch_generator("rows"), dtype=torch.float64)
    assert len(saturation(net, x).layers) == 10
    found = saturation(net, x, mode="train")
    assert {place.split(",")[0][-2:] for place in found.layers} == {"l0"}
    assert "left out: the upper layers of memory (LSTM), whose input dropout draws" in repr(found)


def test_a_gate_that_is_not_a_number_is_told() -> None:
    net = Remembering(nn.GRU)
    net.memory.weight_hh_l0.data[0, 0] = torch.nan
    x = torch.randn(5, 4, 6, generator=torch_generator("rows"), dtype=torch.float64)
    assert saturation(net, x).first_not_finite == ("memory",)


def test_networks_and_layers_without_activations_are_refused() -> None:
    with pytest.raises(Refused, match="no activation is called in the network"):
        saturation(nn.Linear(6, 2).double(), X)
    with pytest.raises(Refused, match="no activation is called in 0 on this batch"):
        saturation(mixed(), X, layers=["0"])
    with pytest.raises(Refused, match="layer '0' calls no activation on this batch"):
        saturation(mixed(), X, layers=["1", "0"])


class Twice(nn.Module):
    """Two layers with one activation, a module or a function, behind each."""

    def __init__(self, activation: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second, self.act = nn.Linear(4, 4), nn.Linear(4, 4), activation

    def forward(self, x: Tensor) -> Tensor:
        return self.act(self.second(self.act(self.first(x))))


@pytest.mark.parametrize("activation", [nn.ReLU(), torch.relu, torch.tanh])
def test_the_layer_before_each_call_of_an_activation_is_known(activation: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(5, 4, generator=torch_generator(0, "test behind"))
    assert saturation(nn.Sequential(Twice(activation)), x).behind == ("0.first", "0.second")
    assert saturation(nn.Sequential(nn.ReLU(), nn.Linear(4, 4)), x).behind == ("",)
