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
    assert len(networks(SETTINGS)) == 2 * 6
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


def test_kinds_are_compared_from_ten_layers_on(results: Results) -> None:
    found = judge(STUDY, results, "quick")
    less, damped = (
        [each for each in found if each.claim == claim]
        for claim in ("resnets-whiten-less", "smaller-beta-whitens-less")
    )
    assert {each.condition.split(",")[0] for each in (*less, *damped)} == {"16 layers"}
    assert sum(each.headline for each in less) == 1
    (step,) = [each for each in damped if each.headline]
    assert step.condition == "16 layers, resnet β = .1 − resnet β = 1"
    assert step.verdict == "holds"
    tenth, one = (mean(results, residual(16, 48, beta)) for beta in (0.1, 1.0))
    assert step.statistic == pytest.approx(tenth - one)
    assert Settings(runs=1, depths=(2, 4)).deep == [4]
    assert Settings(runs=1).deep == [10, 24, 50]


def test_shallow_networks_are_compared_with_brown_noise_and_deep_ones_with_white(results: Results) -> None:
    headlines = {each.claim: each for each in judge(STUDY, results, "quick") if each.headline}
    assert headlines["shallow-brown"].condition.startswith("2 layers, mean-centred, brown noise, ")
    assert headlines["damped-resnet-brown"].condition.startswith("16 layers, β = .1, brown noise, ")
    assert headlines["resnet-correlations-left"].condition == "16 layers, β = 1"
    assert {headlines[each].source for each in headlines} == {"section 1.1", "ours"}
    assert headlines["feedforward-whiten-with-depth"].verdict == "holds"


def test_networks_that_colour_with_depth_contradict_every_claim(
    results: Results, changed: Callable[..., Results]
) -> None:
    lags = [float(lag) for lag in range(1, 9)]
    acfs = {
        ("plain+centring", 2): 0.0,
        ("plain+centring", 16): 0.6,
        ("residual β=1+BN", 2): -0.2,
        ("residual β=1+BN", 16): -0.1,
        ("residual β=0.1+BN", 16): -0.3,
    }
    other = results
    for (model, depth), value in acfs.items():
        other = changed(other, value, model=model, depth=depth, quantity="acf", x=lags)
    verdicts = {each.claim: each.verdict for each in judge(STUDY, other, "quick") if each.headline}
    assert verdicts == dict.fromkeys([claim.id for claim in STUDY.claims], "contradicted")


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
