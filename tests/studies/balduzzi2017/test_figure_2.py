from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from skiplab.reproduction import Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017.figure_2.study import STUDY, Settings, networks
from skiplab.studies.balduzzi2017.line_gradients import averages
from skiplab.studies.balduzzi2017.line_networks import Network, plain, residual

SETTINGS = Settings(runs=10, width=48, depths=(2, 16), points=128, lags=8, series=1000)


@pytest.fixture(scope="module")
def results(ran: Callable[..., Results]) -> Results:
    return ran(STUDY, SETTINGS)


def mean(results: Results, network: Network) -> float:
    sample = averages(results, network)
    return sum(sample) / len(sample)


def test_every_kind_and_depth_is_measured_in_every_run(results: Results) -> None:
    assert len(networks(SETTINGS)) == 2 * 5
    for network in networks(SETTINGS):
        sample = averages(results, network)
        assert len(sample) == SETTINGS.runs
        assert len(set(sample)) == SETTINGS.runs


def test_gradients_whiten_with_depth_unless_something_helps(results: Results) -> None:
    shallow, deep = (mean(results, plain(depth, 48, "batch")) for depth in (2, 16))
    assert deep < 0.1 < 0.4 < shallow
    one, tenth = (mean(results, residual(16, 48, beta)) for beta in (1.0, 0.1))
    assert deep < one < tenth
    assert mean(results, plain(16, 48)) > 0.3  # biases alone shatter slowly


def test_the_order_is_judged_from_ten_layers_on(results: Results) -> None:
    verdicts = [each for each in judge(STUDY, results, "quick") if each.claim == "order-by-kind"]
    assert {each.condition.split(",")[0] for each in verdicts} == {"16 layers"}
    headlines = {each.condition: each for each in verdicts if each.headline}
    assert len(headlines) == 2
    step = headlines["16 layers, resnet β = .1 − resnet β = 1"]
    assert step.verdict == "holds"
    tenth, one = (mean(results, residual(16, 48, beta)) for beta in (0.1, 1.0))
    assert step.statistic == pytest.approx(tenth - one)
    assert Settings(runs=1, depths=(2, 4)).deep == [4]
    assert Settings(runs=1).deep == [10, 24, 50]


def test_swapped_resnets_and_a_coloured_deep_net_contradict(
    results: Results, changed: Callable[..., Results]
) -> None:
    names = {"residual β=0.1+BN": "residual β=1+BN", "residual β=1+BN": "residual β=0.1+BN"}
    lags = [float(lag) for lag in range(1, 9)]
    coloured = changed(results, 0.6, model="plain+centring", depth=16, quantity="acf", x=lags)
    swapped = [
        dataclasses.replace(part, table=part.table.assign(model=part.table["model"].replace(names)))
        for part in coloured.parts
    ]
    found = judge(STUDY, Results(SETTINGS, swapped), "quick")
    verdicts = {each.condition: each.verdict for each in found}
    assert verdicts["16 layers, resnet β = .1 − resnet β = 1"] == "contradicted"
    assert verdicts["mean-centred: below the white band's top"] == "contradicted"
    assert verdicts["mean-centred: above the white band's foot"] == "holds"


def test_the_figure_has_a_panel_per_kind_and_one_for_noise(results: Results) -> None:
    figure = STUDY.figure(results)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["Feedforward", "Resnet, β = 1", "Resnet, β = .1", "Noise"]
    for ax in figure.axes:
        lines = ax.get_lines()
        assert len(lines) == 2
        assert [line.get_ydata()[0] for line in lines] == pytest.approx([1.0, 1.0])
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    strips = [f"mean of {SETTINGS.runs} {kind} series, 95 %" for kind in ("brown", "white")]
    assert words == ["2 layers", "16", *strips]


def test_depths_in_any_order_draw_the_deepest_darkest(results: Results) -> None:
    turned = STUDY.figure(Results(dataclasses.replace(SETTINGS, depths=SETTINGS.depths[::-1]), results.parts))
    for ax, other in zip(turned.axes, STUDY.figure(results).axes, strict=True):
        for line, same in zip(ax.get_lines(), other.get_lines(), strict=True):
            assert line.get_color() == same.get_color()
            assert line.get_ydata() == pytest.approx(same.get_ydata())
