from __future__ import annotations

import dataclasses

import pandas as pd
import pytest

from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017.figure_2.study import STUDY, Settings, networks
from skiplab.studies.balduzzi2017.line_networks import averages


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(runs=10, width=48, depths=(2, 16), points=128, lags=8, series=1000)


@pytest.fixture(scope="module")
def table(settings: Settings) -> pd.DataFrame:
    tables = [call.trial.function(call.settings, Bench()) for call in STUDY.stages[0](settings, [])]
    return STUDY.table(settings, [pd.concat(tables, ignore_index=True)])


def test_every_kind_and_depth_is_measured_in_every_run(table: pd.DataFrame, settings: Settings) -> None:
    assert len(networks(settings)) == 2 * 5
    for network in networks(settings):
        sample = averages(table, network.name, network.depth)
        assert len(sample) == settings.runs
        assert len(set(sample)) == settings.runs


def test_gradients_whiten_with_depth_unless_something_helps(table: pd.DataFrame) -> None:
    def mean(model: str, depth: int) -> float:
        sample = averages(table, model, depth)
        return sum(sample) / len(sample)

    assert mean("plain+BN", 16) < 0.1 < 0.4 < mean("plain+BN", 2)
    assert mean("plain+BN", 16) < mean("residual β=1+BN", 16) < mean("residual β=0.1+BN", 16)
    assert mean("plain", 16) > 0.3  # biases alone shatter slowly


def test_the_order_is_judged_from_ten_layers_on(table: pd.DataFrame, settings: Settings) -> None:
    verdicts = [each for each in judge(STUDY, table, settings, "quick") if each.claim == "order-by-kind"]
    assert {each.condition.split(",")[0] for each in verdicts} == {"16 layers"}
    headlines = {each.condition: each for each in verdicts if each.headline}
    assert len(headlines) == 2
    step = headlines["16 layers, resnet β = .1 − resnet β = 1"]
    assert step.verdict == "holds"
    means = [
        sum(averages(table, name, 16)) / settings.runs for name in ("residual β=0.1+BN", "residual β=1+BN")
    ]
    assert step.statistic == pytest.approx(means[0] - means[1])
    assert Settings(runs=1, depths=(2, 4)).deep == [4]
    assert Settings(runs=1).deep == [10, 24, 50]


def test_swapped_resnets_and_a_coloured_deep_net_contradict(table: pd.DataFrame, settings: Settings) -> None:
    names = {"residual β=0.1+BN": "residual β=1+BN", "residual β=1+BN": "residual β=0.1+BN"}
    changed = table.assign(model=table["model"].replace(names))
    deep = (table["model"] == "plain+centring") & (table["depth"] == 16) & (table["quantity"] == "acf")
    changed.loc[deep & (table["x"] > 0), "value"] = 0.6
    verdicts = {each.condition: each.verdict for each in judge(STUDY, changed, settings, "quick")}
    assert verdicts["16 layers, resnet β = .1 − resnet β = 1"] == "contradicted"
    assert verdicts["mean-centred: below the white band's top"] == "contradicted"
    assert verdicts["mean-centred: above the white band's foot"] == "holds"


def test_the_figure_has_a_panel_a_kind_and_one_for_noise(table: pd.DataFrame, settings: Settings) -> None:
    figure = STUDY.figure(table, settings)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert titles == ["Feedforward", "Resnet, β = 1", "Resnet, β = .1", "Noise"]
    for ax in figure.axes:
        lines = ax.get_lines()
        assert len(lines) == 2
        assert [line.get_ydata()[0] for line in lines] == pytest.approx([1.0, 1.0])
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    strips = [f"mean of {settings.runs} {kind} series, 95 %" for kind in ("brown", "white")]
    assert words == ["2 layers", "16", *strips]


def test_depths_in_any_order_draw_the_deepest_darkest(table: pd.DataFrame, settings: Settings) -> None:
    turned = STUDY.figure(table, dataclasses.replace(settings, depths=settings.depths[::-1]))
    for ax, other in zip(turned.axes, STUDY.figure(table, settings).axes, strict=True):
        for line, same in zip(ax.get_lines(), other.get_lines(), strict=True):
            assert line.get_color() == same.get_color()
            assert line.get_ydata() == pytest.approx(same.get_ydata())
