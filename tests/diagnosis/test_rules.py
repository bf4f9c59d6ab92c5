"""Each rule finds its trouble in a small network that has it, names the place, and is silent where there is none."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from cases import development
from torch import Tensor, nn

from skiplab.diagnosis.diagnose import diagnose
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.references import references
from skiplab.diagnosis.report import Report
from skiplab.diagnosis.rules.gradients import _correlation, _times
from skiplab.diagnosis.rules.units import expected_pairs
from skiplab.diagnosis.thresholds import LIMITS, Limits, seen
from skiplab.randomness import torch_generator
from skiplab.remedies.catalogue import REMEDIES

STREAM = torch_generator(3, "test rules")
X = torch.randn(24, 12, generator=STREAM)
Y = torch.randint(4, (24,), generator=STREAM)
CHEAP = [
    "layer_signals",
    "saturation",
    "branch_ratios",
    "gradient_norms",
    "singularities",
    "gradient_shattering",
]


class Skip(nn.Module):
    """x + β·W₂ ρ(W₁ x)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.act, self.last = nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.last(self.act(self.first(x)))


def drawn(network: nn.Module, gain: float = 1.0, seed: int = 0) -> nn.Module:
    """The network with Gaussian weights of one gain and no biases."""
    stream = torch_generator(seed, "test rules", "weights")
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            layer.weight.data.normal_(0, gain / math.sqrt(layer.in_features), generator=stream)
            layer.bias.data.zero_()
    return network


def chain(depth: int = 5, width: int = 12, activation: Callable[[], nn.Module] = nn.ReLU) -> nn.Sequential:
    layers = [part for _ in range(depth) for part in (nn.Linear(width, width), activation())]
    return nn.Sequential(*layers, nn.Linear(width, 4))


def residual(depth: int = 6) -> nn.Sequential:
    return nn.Sequential(nn.Linear(12, 12), *(Skip(12) for _ in range(depth)), nn.Linear(12, 4))


def examined(network: nn.Module) -> Report:
    return diagnose(network, (X, Y), examinations=CHEAP, budget=30)


def found(network: nn.Module, id: str) -> Finding:
    """The finding of an id, which there must be."""
    return next(each for each in examined(network).findings if each.id == id)


def test_healthy_networks_have_no_trouble() -> None:
    for network in (drawn(chain(), math.sqrt(2)), drawn(residual(), 0.5)):
        report = examined(network)
        assert report.is_healthy, report
        assert report.verdict.startswith("nothing wrong found")


def test_a_dead_layer_is_named_with_its_activation() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[4].bias.data.fill_(-50.0)
    finding = found(network, "dead-layer")
    assert (finding.severity, finding.where) == ("severe", ("4", "5"))


def test_units_that_are_mostly_silent_are_a_warning() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[4].bias.data[:11], network[4].bias.data[11] = -50.0, 5.0
    finding = found(network, "dead-units")
    assert finding.severity == "warning"
    assert finding.statistic == pytest.approx(11 / 12, abs=1e-6)


def test_zero_weights_warn_in_a_head_and_inform_in_a_branch() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[-1].weight.data.zero_()
    assert found(network, "zero-weights").severity == "warning"
    skips = drawn(residual(), 0.5)
    skips[3].last.weight.data.zero_()
    finding = found(skips, "zero-weights")
    assert (finding.severity, finding.where) == ("info", ("3.last",))


def test_a_layer_of_a_hundred_times_the_gain() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[6].weight.data.mul_(100)
    finding = found(network, "outlying-gain")
    assert (finding.severity, finding.where) == ("severe", ("6",))
    assert finding.statistic > 49


def test_saturated_activations_are_named() -> None:
    network = drawn(chain(activation=nn.Tanh), 1.0)
    network[2].weight.data.mul_(1000)
    finding = found(network, "saturated-activations")
    assert finding.where == ("2", "3")
    assert finding.statistic > 0.9
    assert finding.words.endswith("so that hardly any gradient passes through it")


def test_a_gate_that_is_held_open_or_closed_is_not_said_to_stop_the_gradient() -> None:
    class Remembers(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.memory, self.head = nn.LSTM(12, 12, batch_first=True), nn.Linear(12, 4)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.memory(x[:, None].expand(-1, 3, -1))[0][:, -1])

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = Remembers()
    network.memory.bias_ih_l0.data[12:24] = 40.0  # of the forget gate
    report = diagnose(network, (X, Y), examinations=["saturation", "layer_signals"], budget=20)
    (finding,) = [each for each in report.findings if each.id == "saturated-activations"]
    assert finding.where == ("memory", "memory: forget gate, sigmoid")
    assert "held open or closed: what it lets through has its gradient" in finding.words


def test_an_exploding_branch_is_named_with_its_last_layer() -> None:
    network = drawn(residual(), 0.5)
    for tensor in (network[2].last.weight, network[2].last.bias):
        tensor.data.mul_(100)
    finding = found(network, "exploding-branch")
    assert (finding.severity, finding.where) == ("severe", ("2", "2.last"))


def test_a_copied_unit_is_found_also_with_another_norm() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[2].weight.data[7] = 3 * network[2].weight.data[1]
    finding = found(network, "duplicated-units")
    assert finding.where == ("2",)
    assert "1, 7" in finding.words


@pytest.mark.parametrize(("gain", "id"), [(0.3, "vanishing-gradients"), (5.0, "exploding-gradients")])
def test_gradients_with_depth(gain: float, id: str) -> None:
    finding = found(drawn(chain(12), gain), id)
    assert finding.severity == "severe"
    assert finding.low <= finding.statistic <= finding.high


def test_signals_that_shrink_and_grow() -> None:
    assert found(drawn(chain(12), 0.3), "vanishing-signals").severity != "info"
    assert found(drawn(chain(12), 5.0), "exploding-signals").severity == "severe"


def test_white_gradients_are_a_warning_only_in_deep_plain_networks() -> None:
    deep = found(drawn(chain(40, activation=nn.Tanh), 3.0), "shattered-gradients")
    shallow = found(drawn(chain(6, activation=nn.Tanh), 3.0), "shattered-gradients")
    assert (deep.severity, shallow.severity) == ("warning", "info")


def test_the_first_number_that_is_not_finite_is_named() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[4].weight.data[0, 0] = math.inf
    finding = examined(network).findings[0]
    assert (finding.id, finding.where) == ("not-finite", ("4",))


def test_chance_copies_are_counted_by_the_angle_of_random_directions() -> None:
    stream = torch_generator(0, "test rules", "angles")
    units, inputs, distance, draws = 60, 4, 1e-3, 200
    pairs = 0
    for _ in range(draws):
        rows = torch.randn(units, inputs, generator=stream, dtype=torch.float64)
        correlations = torch.corrcoef(rows)
        pairs += int((torch.triu(correlations, 1) > 1 - distance).sum())
    expected = expected_pairs(units, inputs, distance) * draws
    assert expected == pytest.approx(pairs, abs=4 * math.sqrt(expected))
    assert expected_pairs(10, 2, 1e-6) == 45  # of two numbers all are alike or opposite


def test_the_correlation_of_gradients_against_pairs_and_left_out_samples() -> None:
    rows = torch.randn(9, 5, generator=STREAM, dtype=torch.float64) + 1

    def plain(rows: Tensor) -> float:
        pairs = [float(rows[i] @ rows[j]) for i in range(len(rows)) for j in range(len(rows)) if i != j]
        return sum(pairs) / len(pairs) / float(rows.square().sum(1).mean())

    left = torch.tensor([plain(torch.cat([rows[:i], rows[i + 1 :]])) for i in range(9)], dtype=torch.float64)
    value, error = _correlation(rows)
    assert value == pytest.approx(plain(rows))
    assert error == pytest.approx(math.sqrt(8 / 9 * float((left - left.mean()).square().sum())))


def test_limits_grade_both_ways() -> None:
    up, down = Limits("up", 2.0, 4.0, "…"), Limits("down", 0.1, 0.01, "…", falls=True)
    assert [up.grade(each).severity for each in (1.0, 3.0, 5.0, math.nan)] == [
        "info",
        "warning",
        "severe",
        "info",
    ]
    assert [down.grade(each).severity for each in (1.0, 0.05, 0.001)] == ["info", "warning", "severe"]
    assert up.grade(4.0).weight == pytest.approx(math.log(2))
    assert down.grade(0.05).weight == pytest.approx(math.log(2))
    assert (up.usual, down.usual) == ((-math.inf, 2.0), (0.1, math.inf))


def test_limits_lie_between_what_healthy_and_sick_networks_have() -> None:
    known = seen()["limits"]
    assert set(known) == {limit.name for limit in LIMITS}
    assert seen()["healthy networks"] == len(development.CONTROLS) + len(development.PAIRS)
    for limit in LIMITS:
        assert "{" not in limit.words
        span = known[limit.name]
        if span["healthy"] is not None:
            assert not limit.grade(span["healthy"]).is_bad, limit.name
        if span["sick"] is not None:
            assert limit.grade(span["sick"]).is_bad, limit.name
        assert not ("{sick}" in limit.told and span["sick"] is None), limit.name
        assert not ("{healthy}" in limit.told and span["healthy"] is None), limit.name


OF_CHANGED_DATA = [limit for limit in LIMITS if "{missed}" in limit.told]


@pytest.mark.parametrize("limit", OF_CHANGED_DATA, ids=lambda limit: limit.name)
def test_limits_about_data_are_where_the_development_list_has_least_mistakes(limit: Limits) -> None:
    known, sign = seen()["limits"][limit.name], -1 if limit.falls else 1
    low, high = sorted(known["least mistakes"])
    assert limit.warning == pytest.approx(math.sqrt(low * high), rel=0.05)  # in two digits
    assert sign * limit.severe > sign * limit.warning
    assert limit.grade(known["last training"]).severity != "severe"
    for count, whole in (("missed", "failing"), ("blamed", "training")):
        assert f"{known[count]} are" in limit.words
        assert f"of {known[whole]} " in limit.words


def test_every_finding_says_what_it_rests_on_and_proposes_what_there_is() -> None:
    networks = [drawn(chain(12), gain) for gain in (0.3, 5.0)]
    for finding in (each for network in networks for each in examined(network).findings):
        assert finding.reference or finding.id == "not-finite", finding
        assert finding.support.startswith(references().support[finding.id].words)
        assert set(finding.remedy) <= set(REMEDIES)


def test_sharp_curvature_is_a_warning_only_where_published_networks_are_comparable() -> None:
    def sharpness(network: nn.Module) -> Finding:
        report = diagnose(network, (X, Y), examinations=["hessian_extremes"], budget=20)
        return next(each for each in report.findings if each.id == "sharp-curvature")

    steep = drawn(chain(6), 20.0)
    assert sharpness(steep).statistic > 7e4
    assert sharpness(steep).severity == "warning"
    assert sharpness(nn.Sequential(nn.LayerNorm(12), *steep)).severity == "info"


def test_words_name_the_layer_whose_number_they_tell() -> None:
    network = drawn(chain(12), 0.3)
    finding = found(network, "vanishing-signals")
    outputs, x = {}, X
    for name, part in network.named_children():
        x = part(x)
        if isinstance(part, nn.Linear):
            outputs[name] = float(x.detach().square().mean().sqrt())
    worst = next(name for name in outputs if f"output of layer {name} has" in finding.words)
    assert finding.statistic == pytest.approx(outputs[worst] / outputs["0"], rel=1e-4)
    assert f"from layer {finding.where[0]} on" in finding.words
    assert worst != finding.where[0]  # the trouble begins before it is worst


def test_a_large_layer_is_compared_in_words_with_what_its_number_compares_it_with() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[6].weight.data.mul_(100)
    finding = found(network, "outlying-gain")
    which = "any other" if "no layer is more than" in finding.reference else "the median"
    assert (
        finding.words
        == f"the weights of 6 are {finding.statistic:.3g} times as large as those of {which} layer"
    )


def test_a_large_branch_has_its_number_in_words() -> None:
    network = drawn(residual(), 0.01)
    network[2].last.weight.data.mul_(30_000)
    finding = found(network, "exploding-branch")
    assert f"{finding.statistic:.3g} times" in finding.words


class Attends(nn.Module):
    """Softmax over features after a steep layer."""

    def __init__(self) -> None:
        super().__init__()
        self.scores, self.soft, self.head = nn.Linear(12, 12), nn.Softmax(-1), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.soft(self.scores(x)))


def test_a_sharp_softmax_is_told_by_its_rows() -> None:
    finding = found(drawn(Attends(), 1000.0), "saturated-activations")
    assert finding.where == ("scores", "soft")
    assert "of the rows of soft give more than 99 % of their weight to one entry" in finding.words
    assert finding.words.endswith("hardly any gradient reaches the numbers by which they choose")
    assert finding.unit == "share of rows"


def test_inputs_that_are_not_finite_are_told_as_such_and_no_remedy_is_proposed() -> None:
    report = diagnose(drawn(chain()), (X.clone().fill_(math.nan), Y), examinations=CHEAP, budget=30)
    finding = report.findings[0]
    assert finding.words == "the input itself holds numbers that are not finite (NaN or ∞)"
    assert finding.remedy == ()


def test_a_factor_is_written_out_beside_its_logarithm() -> None:
    assert _times(math.log(500)) == "500 times (6.2 powers of e)"
    assert _times(1000.0) == "10^434 times (1e+03 powers of e)"  # more than a float holds


def test_both_symmetries_are_told_and_none_that_is_unknown() -> None:
    names = ["permutation_symmetry", "rescaling_symmetry"]
    report = diagnose(drawn(chain(3), 1.0), (X, Y), examinations=names, budget=30)
    words = next(each.words for each in report.findings if each.id == "symmetric-units")
    assert "permuting a layer's units moves outputs by 0.0%" in words
    assert "rescaling two layers moves outputs by 0.0%" in words
    loss = nn.CrossEntropyLoss()
    unknown = diagnose(
        drawn(chain(3), 1.0), (X, Y), loss_fn=lambda m, b: loss(m(b[0]), b[1]), examinations=names, budget=30
    )
    assert not any("nan" in each.words for each in unknown.findings)


def test_complex_weights_are_compared_by_their_size() -> None:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*(nn.Linear(12, 12, dtype=torch.cfloat) for _ in range(4)))

        def forward(self, x: Tensor) -> Tensor:
            return self.layers(x.to(torch.cfloat)).abs()[:, :4]

    network = Complex()
    network.layers[2].weight.data.mul_(100j)
    assert found(network, "outlying-gain").where == ("layers.2",)


def test_a_finding_knows_the_examinations_that_its_rule_looked_at() -> None:
    told_by = {each.id: each.told_by for each in examined(drawn(chain(12), 0.3)).findings}
    assert told_by["vanishing-signals"] == ("layer_signals",)
    assert told_by["vanishing-gradients"] == ("gradient_norms",)
    network = drawn(chain(), math.sqrt(2))
    network[6].weight.data.mul_(100)
    assert found(network, "outlying-gain").told_by == ()  # of the weights themselves
    network[4].bias.data.fill_(-50.0)
    assert set(found(network, "dead-layer").told_by) == {"saturation", "layer_signals"}


def test_a_network_that_is_one_layer_is_named_in_words() -> None:
    network = drawn(nn.Linear(12, 4))
    network.weight.data.zero_()
    report = examined(network)
    finding = next(each for each in report.findings if each.id == "zero-weights")
    assert (finding.where, finding.words.partition(":")[0]) == (("",), "all weights of the network are 0")
    assert "at the first step [the network]" in " ".join(repr(report).split())


def test_a_branch_that_is_its_last_layer_is_named_once() -> None:
    class Root(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(12, 12)

        def forward(self, x: Tensor) -> Tensor:
            return x + 100 * self.layer(x)

    assert found(drawn(Root()), "exploding-branch").where == ("layer",)


class TwoHeads(nn.Module):
    """Only the first head's answer is returned; the second is called, and no loss depends on it."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(12, 12), nn.ReLU()) for _ in range(4))
        self.unused, self.head = nn.Linear(12, 12), nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        self.unused(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def warned(network: nn.Module) -> set[str]:
    return {each.id for each in examined(network).findings if each.severity != "info"}


def test_a_head_that_is_not_trained_is_no_vanishing_gradient() -> None:
    assert warned(drawn(TwoHeads(), math.sqrt(2))) == set()


def test_a_gradient_that_a_zero_head_stops_is_told_once() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[-1].weight.data.zero_()
    assert warned(network) == {"zero-weights"}
    assert found(network, "vanishing-gradients").severity == "info"


def test_a_gradient_that_a_dead_layer_stops_is_severe() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[6].bias.data.fill_(-50.0)
    finding = found(network, "vanishing-gradients")
    assert (finding.severity, finding.where) == ("severe", ("10", "8"))
    assert "the first 5 of 6 blocks" in finding.words


class Detached(Skip):
    """A block that hands no gradient on where it is told so."""

    stops = False

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).detach() if self.stops else super().forward(x)


def test_a_detached_block_is_named_where_the_gradient_ends() -> None:
    network = drawn(nn.Sequential(nn.Linear(12, 12), *(Detached(12) for _ in range(8)), nn.Linear(12, 4)))
    network[4].stops = True
    finding = found(network, "vanishing-gradients")
    assert (finding.severity, finding.where) == ("severe", ("4", "3"))


def test_certain_answers_are_no_saturation_and_decided_gates_only_if_nearly_all_are() -> None:
    def gated(bias: float) -> nn.Module:
        network = drawn(chain(3, activation=nn.Sigmoid), 1.0)
        network[2].bias.data[:9] = bias
        return network

    certain = nn.Sequential(*drawn(chain(), math.sqrt(2)), nn.Sigmoid())
    certain[-2].weight.data.mul_(1000)
    assert "saturated-activations" not in warned(certain)
    assert "saturated-activations" not in warned(gated(40.0))  # three quarters
    all_of_it = gated(40.0)
    all_of_it[2].bias.data.fill_(-40.0)
    assert "saturated-activations" in warned(all_of_it)


def test_units_of_one_constant_weight_are_copies() -> None:
    network = drawn(chain(), math.sqrt(2))
    network[4].weight.data.fill_(0.1)
    finding = found(network, "duplicated-units")
    assert finding.where == ("4",)
    assert finding.words.startswith("12 units")
