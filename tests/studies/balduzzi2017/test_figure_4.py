from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

from skiplab.reproduction import Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017 import figure_3
from skiplab.studies.balduzzi2017.activity import BINS, Settings, histogram, kinds, rows_of
from skiplab.studies.balduzzi2017.figure_4.plot import raster
from skiplab.studies.balduzzi2017.figure_4.study import STUDY
from skiplab.studies.balduzzi2017.line_networks import build, grid

SETTINGS = Settings(runs=8, width=24, depth=16, points=64, layers=(1, 4, 16))


@pytest.fixture(scope="module")
def results(ran: Callable[..., Results]) -> Results:
    return ran(STUDY, SETTINGS)


def fields(words: str, layer: int) -> np.ndarray:
    """The first network's rectifier inputs at a layer, (units, inputs), with nothing normalised."""
    net, z = build(kinds(SETTINGS)[words], SETTINGS.seed), grid(SETTINGS.points)
    with torch.no_grad():
        z = net.first(z)
        for block in net.blocks[: layer - 1]:
            z = block(z)
    return z.T.numpy()


def test_the_raster_is_the_first_networks_pattern(results: Results) -> None:
    for words in ("feedforward", "resnet without BN"):
        for layer in SETTINGS.layers:
            expected = fields(words, layer) > 0
            assert np.array_equal(raster(results, words, layer), expected)


def test_histograms_count_units_and_runs(results: Results) -> None:
    for layer in SETTINGS.layers:
        pattern = fields("feedforward", layer) > 0
        active = histogram(results, "feedforward", "activation share", layer)
        bins = np.minimum((pattern.mean(axis=1) * BINS).astype(int), BINS - 1)
        assert active.loc[SETTINGS.seed].to_numpy() == pytest.approx(
            np.bincount(bins, minlength=BINS) / SETTINGS.width
        )
        lengths = [
            len(run) for row in pattern for run in np.split(row, np.flatnonzero(np.diff(row.astype(int))) + 1)
        ]
        octaves = np.bincount(np.log2(lengths).astype(int), minlength=7) / len(lengths)
        runs = histogram(results, "feedforward", "run share", layer)
        assert runs.columns.tolist() == [1, 2, 4, 8, 16, 32, 64]
        assert runs.loc[SETTINGS.seed].to_numpy() == pytest.approx(octaves)
        for quantity, value in {"run length": np.mean(lengths), "run spread": np.log2(lengths).std()}.items():
            rows = rows_of(results, "feedforward", quantity, layer=layer, run=SETTINGS.seed)
            assert rows["value"].item() == pytest.approx(value)


def test_figure_3s_networks_are_used() -> None:
    assert STUDY.stages == figure_3.STUDY.stages
    assert STUDY.settings == figure_3.STUDY.settings


def test_verdicts(results: Results) -> None:
    verdicts = {(each.claim, each.condition): each for each in judge(STUDY, results, "quick")}
    assert verdicts["always-or-never-without-bn", "feedforward, layer 16"].verdict == "holds"
    assert verdicts["always-or-never-without-bn", "feedforward, no biases, layer 1"].statistic == -1.0
    short = verdicts["contiguity-short-in-feedforward-bn", "resnet + BN − feedforward + BN, layer 16"]
    assert short.verdict == "holds"
    middle = histogram(results, "feedforward + BN", "activation share", 16)
    half = verdicts["half-active-with-bn", "feedforward + BN, layer 16"]
    assert middle.columns[4:6].tolist() == pytest.approx([0.4, 0.5])
    assert half.statistic == pytest.approx(middle.to_numpy()[:, 4:6].sum(axis=1).mean())
    # At layer 1 every unit is active for exactly half the inputs.
    assert verdicts["half-active-with-bn", "resnet + BN, layer 1"].statistic == pytest.approx(1.0)
    ends = [
        histogram(results, "feedforward", "activation share", layer).to_numpy()[:, [0, -1]].sum(axis=1).mean()
        for layer in SETTINGS.layers
    ]
    for words in ("feedforward", "feedforward, small biases"):
        shares = histogram(results, words, "activation share", 16).to_numpy()
        apart = shares[:, [0, -1]].min(axis=1) - shares[:, 1:-1].max(axis=1)
        always = verdicts["always-or-never-without-bn", f"{words}, layer 16"]
        assert (always.statistic, always.headline) == (pytest.approx(apart.mean()), True)
        assert f"{shares[:, [0, -1]].sum(axis=1).mean():.1%}" in always.detail
        assert verdicts["more-bimodal-with-depth", f"{words}, layer 4 − layer 1"].headline
    grown = verdicts["more-bimodal-with-depth", "feedforward, layer 4 − layer 1"]
    assert (grown.statistic, grown.paired) == (pytest.approx(ends[1] - ends[0]), True)
    static = verdicts["static-noise-in-feedforward-bn", "feedforward + BN, layer 16"]
    length = rows_of(results, "feedforward + BN", "run length", layer=16)["value"].mean()
    assert static.statistic == pytest.approx(length - 64 / (1 + 63 / 2))
    headlines = [each.claim for each in verdicts.values() if each.headline]
    assert list(dict.fromkeys(headlines)) == [claim.id for claim in STUDY.claims]
    assert headlines.count("half-active-with-bn") == 2


def test_activations_the_other_way_round_and_short_runs_contradict(
    results: Results, changed: Callable[..., Results]
) -> None:
    """With batch normalisation units on or off for all inputs, without it units on for half of them."""

    def turned(rows: pd.DataFrame) -> np.ndarray:
        ends, middle = (rows["x"].round(1).isin(places) for places in ((0.0, 0.9), (0.4, 0.5)))
        return np.where(np.where(rows["model"].str.endswith("+BN"), ends, middle), 0.5, 0.0)

    other = changed(results, turned, quantity="activation share")
    other = changed(other, 0.1, model="residual β=1+BN", quantity=("run length", "run spread"))
    other = changed(other, 5.0, model="plain+BN", quantity="run length")
    verdicts = {each.claim: each.verdict for each in judge(STUDY, other, "quick") if each.headline}
    assert set(verdicts.values()) == {"contradicted"}


def test_the_figure_has_a_raster_and_two_histograms_per_cell(results: Results) -> None:
    axes = STUDY.figure(results).axes
    assert len(axes) == 3 * 3 * 3
    letters = {ax.texts[0].get_text(): ax.texts[0].get_fontweight() for ax in axes if ax.texts}
    assert letters == dict.fromkeys("abc", "bold")
    image = axes[6].get_images()[0].get_array()
    assert np.array_equal(image, raster(results, "feedforward", 16))
    heights = [bar.get_height() for bar in axes[7].patches]
    assert sum(heights) == pytest.approx(1.0)


@pytest.mark.slow
def test_what_is_alike_is_of_one_size_and_labelled(results: Results) -> None:
    figure = STUDY.figure(results)
    figure.draw_without_rendering()
    for kind, label in enumerate(("input $x$", "activation per unit", "contiguity (inputs)")):
        alike = figure.axes[kind::3]
        assert {ax.get_xlabel() for ax in alike} == {label}
        for side in ("width", "height"):
            sizes = [getattr(ax.get_position(), side) for ax in alike]
            assert sizes == pytest.approx([sizes[0]] * 9, rel=0.01)
    rasters = [ax.get_position().y0 for ax in figure.axes[::3]]
    assert rasters == pytest.approx(rasters[:3] * 3, abs=1e-3)  # three cases, three layers each
    assert [text.get_text() for text in figure.legends[0].get_texts()][:2] == ["active", "inactive"]
