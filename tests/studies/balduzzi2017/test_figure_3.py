from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from skiplab.checks import Refused
from skiplab.reproduction import Bench, Results
from skiplab.reproduction.results import Part
from skiplab.reproduction.settings import choose
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017 import figure_4
from skiplab.studies.balduzzi2017.activity import Patterns, Settings, by_layer, kinds, patterns
from skiplab.studies.balduzzi2017.figure_3 import STUDY
from skiplab.studies.balduzzi2017.line_networks import build, grid

SETTINGS = Settings(runs=12, width=24, depth=12, points=64, layers=(1, 4, 12))


@pytest.fixture(scope="module")
def results(ran: Callable[..., Results]) -> Results:
    return ran(STUDY, SETTINGS)


def test_shares_are_counts_of_signs() -> None:
    """One network by hand: which fields are positive, and pairs of inputs counted one by one."""
    settings = Settings(runs=1, width=7, depth=3, points=9, layers=(1,))
    network = kinds(settings)["feedforward"]
    table = patterns.function(Patterns(network, (4,), points=9, layers=(1,)), Bench())
    results = Results(settings, [Part(patterns.name, "draws", table)])
    net, z = build(network, 4), grid(9)
    with torch.no_grad():
        z = net.first(z)
        for layer, block in enumerate(net.blocks, start=1):
            active = (z > 0).numpy()
            pairs = [np.mean(active[i] & active[j]) for i in range(9) for j in range(9) if i != j]
            expected = {"activation": active.mean(), "coactivation": np.mean(pairs)}
            for quantity, value in expected.items():
                assert by_layer(results, "feedforward", quantity)[layer].item() == pytest.approx(value)
            z = block(z)


def test_batch_normalised_first_layers_split_the_line_in_two(results: Results) -> None:
    words, half = "feedforward + BN", SETTINGS.points // 2
    assert by_layer(results, words, "activation")[1].to_numpy() == pytest.approx(0.5)
    pairs = half * (half - 1) / (SETTINGS.points * (SETTINGS.points - 1))
    assert by_layer(results, words, "coactivation")[1].to_numpy() == pytest.approx(pairs)


@pytest.mark.parametrize("layers", [(0, 50), (1, 51), (-1, 50), (10, 1), (1, 1)])
def test_layers_that_are_not_there_are_refused(layers: tuple[int, ...]) -> None:
    with pytest.raises(Refused, match="layers 1 to 50"):
        Settings(runs=1, layers=layers)
    for study in (STUDY, figure_4.STUDY):
        with pytest.raises(Refused, match=r"^layers is "):
            choose(study, "paper", {"layers": ",".join(map(str, layers))})
    with pytest.raises(Refused, match="layers 1 to 20"):
        choose(STUDY, "paper", {"depth": "20"})


def test_every_layer_of_every_network_is_there(results: Results) -> None:
    for words in kinds(SETTINGS):
        for quantity in ("activation", "coactivation"):
            wide = by_layer(results, words, quantity)
            assert wide.shape == (SETTINGS.runs, SETTINGS.depth)
            assert not wide.isna().to_numpy().any()


def test_verdicts(results: Results) -> None:
    verdicts = {(each.claim, each.condition): each for each in judge(STUDY, results, "quick")}
    assert verdicts["half-active", "feedforward + BN, all layers"].verdict == "holds"
    small = "feedforward, small biases"
    for claim, where in (
        ("coactive-climbs-without-bn", "layer 4 − layer 1"),
        ("half-active", "all layers"),
    ):
        row = verdicts[claim, f"{small}, {where}"]
        assert (row.verdict, row.headline) == ("holds", True)
    wide = by_layer(results, "feedforward + BN", "coactivation")
    quarter = verdicts["quarter-coactive-with-bn", "feedforward + BN, all layers"]
    assert quarter.statistic == pytest.approx(wide.to_numpy().mean())
    assert (quarter.paper_value, quarter.margin) == (0.25, pytest.approx(0.025))


@pytest.mark.parametrize(
    ("model", "quantity", "layers", "value", "claim"),
    [
        ("plain+BN", "activation", range(1, 13), 0.4, "half-active"),
        ("plain+BN", "coactivation", range(1, 13), 0.3, "quarter-coactive-with-bn"),
        ("plain", "coactivation", (12,), 0.2, "coactive-climbs-without-bn"),
        ("residual β=1+BN", "coactivation", range(1, 13), 0.45, "resnets-the-same"),
    ],
)
def test_other_shares_contradict(
    results: Results,
    changed: Callable[..., Results],
    model: str,
    quantity: str,
    layers: range | tuple[int, ...],
    value: float,
    claim: str,
) -> None:
    other = changed(results, value, model=model, quantity=quantity, layer=layers)
    verdicts = judge(STUDY, other, "quick")
    headlines = [each.verdict for each in verdicts if each.claim == claim and each.headline]
    assert "contradicted" in headlines


def test_the_figure_draws_solid_without_and_dotted_with_bn(results: Results) -> None:
    figure = STUDY.figure(results)
    assert [ax.get_title("left") for ax in figure.axes] == [
        "Feedforward",
        "Resnet, β = 1 (not shown in the paper)",
    ]
    assert figure.legends[0].get_texts()[-1].get_text() == "coin flips"
    for ax in figure.axes:
        lines = [line for line in ax.get_lines() if not line.get_label().startswith("_")]
        styles = {line.get_label(): line.get_linestyle() for line in lines}
        assert styles == {
            "activations, without BN": "-",
            "activations, with BN": ":",
            "coactivations, without BN": "-",
            "coactivations, with BN": ":",
        }
        assert all(len(line.get_xdata()) == SETTINGS.depth for line in lines)
