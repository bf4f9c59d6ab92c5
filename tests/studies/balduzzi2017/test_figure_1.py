from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
import torch

from skiplab.data import fingerprint
from skiplab.figures.colours import colour_of
from skiplab.measurements.autocorrelation import autocorrelation, noise_band
from skiplab.randomness import torch_generator
from skiplab.reproduction import Bench, Claim, Results, Study
from skiplab.reproduction.results import Part
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017 import figure_2
from skiplab.studies.balduzzi2017.figure_1.evidence import by_differences, steps_of
from skiplab.studies.balduzzi2017.figure_1.study import STUDY, Settings
from skiplab.studies.balduzzi2017.figure_1.trials import (
    ALTERNATIVES,
    NetworkSteps,
    SeriesSteps,
    alike,
    effective_number,
    network_steps,
    series_steps,
)
from skiplab.studies.balduzzi2017.line_gradients import (
    LineGradients,
    NoiseSeries,
    averages,
    curves,
    gradients,
    measured,
    noise,
)
from skiplab.studies.balduzzi2017.line_networks import Network, build, grid, plain, residual, shallow
from skiplab.studies.balduzzi2017.noise_bands import IN_BAND, RESEMBLES, band, band_at_lag, resembling
from skiplab.studies.balduzzi2017.palette import NOISE

SETTINGS = Settings(runs=6, width=24, deep=12, resnet=10, points=128, lags=8, series=1000)


@pytest.fixture(scope="module")
def results(ran: Callable[..., Results]) -> Results:
    return ran(STUDY, SETTINGS)


def gradient_of(network: Network, points: int = 256) -> torch.Tensor:
    table = gradients.function(LineGradients(network, (0,), points), Bench())
    rows = measured(Results(None, [Part(gradients.name, "draws", table)]), network, "gradient")
    return torch.tensor(rows["value"].to_numpy())


def noises_of(series: int) -> Results:
    tables = [noise.function(NoiseSeries(kind, tuple(range(series))), Bench()) for kind in ("white", "brown")]
    return Results(None, [Part(noise.name, "draws", table) for table in tables])


def test_names_and_biases() -> None:
    assert plain(24, 200, "centre").name == "plain+centring"
    assert residual(50, 200, 0.1).name == "residual β=0.1+BN"
    assert residual(50, 200, 1.0, "none") == Network(50, 200, skip=True, bias_std=1.0)
    assert plain(3, 8, "batch").bias_std == 0.0
    assert plain(3, 8, bias_std=0.25).bias_std == 0.25


def test_the_shallow_gradient_is_the_sum_of_the_weights_of_active_units() -> None:
    """With f(x) = wᵀρ(x v − b), v = 1: df/dx = Σ w_i over units with x > b_i."""
    network = shallow(40)
    net = build(network, 0)
    state = {name: tensor.double() for name, tensor in net.state_dict().items()}
    outgoing = (state["output.weight"] @ state["blocks.0.linear.weight"])[0]
    active = grid().double() + state["first.bias"] > 0
    torch.testing.assert_close(gradient_of(network), active.double() @ outgoing, rtol=1e-4, atol=1e-5)


def test_the_texts_biases_leave_the_gradient_flat_but_near_zero() -> None:
    x = grid()[:, 0]
    small = gradient_of(shallow(200, 200**-0.5))
    for side in (small[x > 0.36], small[x < -0.36]):
        torch.testing.assert_close(side, side[:1].expand_as(side), rtol=1e-4, atol=1e-5)
    assert len(gradient_of(shallow(200)).unique()) > 100


def test_nothing_shatters_without_biases_and_centring() -> None:
    values = gradient_of(plain(24, 50, bias_std=0.0))
    for side in (values[:128], values[128:]):
        torch.testing.assert_close(side, side[:1].expand_as(side), rtol=1e-3, atol=1e-6)


def test_the_derivative_is_that_of_the_centred_network() -> None:
    """The output's own slope, in float64, with each layer's means fixed at those of the grid."""
    network, h = plain(5, 16, "centre"), 1e-6
    net = build(network, 0).double()

    def output(x: torch.Tensor, means: list[torch.Tensor] | None) -> tuple[torch.Tensor, list[torch.Tensor]]:
        found = []
        z = net.first(x)
        for layer, block in enumerate(net.blocks):
            found.append(z.mean(0) if means is None else means[layer])
            z = block.linear((z - found[-1]).relu())
        return net.output(z)[:, 0], found

    with torch.no_grad():
        x = grid(64).double()
        means = output(x, None)[1]
        slopes = (output(x + h, means)[0] - output(x - h, means)[0]) / (2 * h)
    torch.testing.assert_close(gradient_of(network, 64), slopes, rtol=1e-3, atol=1e-4)


def test_noise_lies_in_its_own_band_and_not_in_the_other() -> None:
    results = noises_of(40)
    white, brown = band(results, "white"), band(results, "brown")
    # The mean of 15 nearly independent ACFs, each of mean −1/256 and deviation 1/16.
    assert white == pytest.approx((-1.96 / 16 / math.sqrt(15), 1.96 / 16 / math.sqrt(15)), abs=0.006)
    assert white[1] < 0.1 < 0.5 < brown[0]
    for kind, (low, high) in {"white": white, "brown": brown}.items():
        sample = averages(results, kind)
        assert len(sample) == 40
        assert sum(low <= value <= high for value in sample) >= 34
        assert curves(results, kind)[0.0].to_numpy() == pytest.approx(1.0)


@pytest.fixture(scope="module")
def noises() -> Results:
    return noises_of(20)


@pytest.mark.parametrize("kind", ["white", "brown"])
def test_a_lags_band_is_that_of_simulated_experiments(noises: Results, kind: str) -> None:
    """Twenty series were drawn; the bands of single series and of a mean of 80 follow from theirs."""
    for count, tolerance in ((80, 0.2), (1, 0.3)):  # quantiles of single brown series are far from symmetric
        many = noise_band(kind, 256, range(1, 16), count, torch_generator(1, "test"), draws=1000)
        scale = float(many.high[0] - many.low[0])
        low, high = band_at_lag(noises, kind, 1, count)
        assert low == pytest.approx(float(many.low[0]), abs=tolerance * scale)
        assert high == pytest.approx(float(many.high[0]), abs=tolerance * scale)


def test_noise_resembles_itself_and_what_is_coloured_does_not(noises: Results) -> None:
    """Perfect noise holds; a shift beyond the band contradicts, and colour at lag 1 alone leaves the claim open."""

    def verdicts(acfs: pd.DataFrame) -> list[str]:
        claim = Claim("c", "C.", lambda _: resembling(noises, "white", acfs, "here"), RESEMBLES, IN_BAND)
        alone = dataclasses.replace(STUDY, claims=(claim,))
        found = judge(alone, noises, "quick")
        return [row.verdict for row in found if row.headline]

    white = curves(noises, "white")
    assert verdicts(white) == ["holds", "holds"]
    shifted = white.copy()
    shifted.loc[:, 1.0:] += 0.2
    assert verdicts(shifted) == ["contradicted", "contradicted"]
    coloured = white.copy()
    coloured.loc[:, 1.0] -= 0.3
    coloured.loc[:, 2.0:] += 0.3 / 14
    assert verdicts(coloured) == ["undecided"]
    *further, judged = resembling(noises, "white", coloured, "here")
    assert [row.headline for row in further] == [False, False]
    assert "averaged over lags inside, lag 1 alone outside the band" in judged.detail
    assert len(list(resembling(noises, "white", coloured, "here", headline=False))) == 2


def test_places_in_a_band_are_counted_in_half_widths_from_its_middle(noises: Results) -> None:
    low, high = band(noises, "white")
    acfs = curves(noises, "white")
    acfs.loc[:, 1.0:] = high
    average, first = resembling(noises, "white", acfs, "here")
    assert average.samples[0] == pytest.approx([1.0] * 20)
    ends = band_at_lag(noises, "white", 1)
    assert first.samples[0] == pytest.approx([(high - sum(ends) / 2) / ((ends[1] - ends[0]) / 2)] * 20)
    acfs.loc[:, 1.0:] = (low + high) / 2
    assert next(resembling(noises, "white", acfs, "here")).samples[0] == pytest.approx([0.0] * 20)


def test_networks_of_noise_scatter_as_noise(results: Results, changed: Callable[..., Results]) -> None:
    """Six of six networks in the band are 5 points more than noise; none is 95 less."""
    for value, expected in ((0.0, 0.05), (0.9, -0.95)):
        lags = [float(lag) for lag in range(1, 9)]
        other = changed(results, value, model="plain+centring", quantity="acf", x=lags)
        (row,) = [
            row
            for row in judge(STUDY, other, "quick")
            if row.claim == "single-networks-white" and row.headline
        ]
        assert row.statistic == pytest.approx(expected)
        assert row.verdict == ("holds" if value == 0.0 else "contradicted")
        assert (row.ours, row.margin) == (True, 0.05)


def test_claims_look_at_the_papers_networks_first(results: Results) -> None:
    verdicts = {(each.claim, each.condition): each for each in judge(STUDY, results, "quick")}
    low, high = band(results, "white")
    mean = sum(averages(results, plain(12, 24, "centre"))) / 6
    white = [each for (claim, _), each in verdicts.items() if claim == "deep-white"]
    assert len(white) == 3 * 2
    assert {each.condition.split(",")[0] for each in white if each.headline} == {"mean-centred"}
    headline = verdicts["deep-white", "mean-centred, white noise, averaged over lags"]
    assert headline.statistic == pytest.approx((mean - (low + high) / 2) / ((high - low) / 2))
    brown = [row for (claim, _), row in verdicts.items() if claim == "shallow-brown"]
    assert {row.condition.split(",")[0] for row in brown if row.headline} == {"biases of deviation 1"}
    assert len([row for row in brown if row.headline]) == 3
    assert {row.condition.split(",")[0] for row in brown if not row.headline} == {
        f"biases of deviation {SETTINGS.text_bias:.3g}",
        *ALTERNATIVES.values(),
        "the ACF itself",
    }
    assert verdicts["resnet-between", "β = .1: above white noise"].verdict == "holds"
    resnets = averages(results, residual(10, 24, 0.1))
    above = next(each for (claim, _), each in verdicts.items() if claim == "resnet-more-structure")
    assert above.statistic == pytest.approx(sum(resnets) / 6 - mean)


@pytest.mark.parametrize(
    ("model", "claim"),
    [
        ("plain+centring", "deep-white"),
        ("residual β=0.1+BN", "resnet-between"),
        ("residual β=0.1+BN", "resnet-more-structure"),
    ],
)
def test_other_gradients_would_contradict(
    results: Results, changed: Callable[..., Results], model: str, claim: str
) -> None:
    """White gradients where brown or between was claimed, brown ones where white was."""
    wrong = {"deep-white": 0.9, "resnet-more-structure": -0.2}.get(claim, 0.0)
    lags = [float(lag) for lag in range(1, 9)]
    other = changed(results, wrong, model=model, quantity="acf", x=lags)
    verdicts = judge(STUDY, other, "quick")
    headlines = [each.verdict for each in verdicts if each.claim == claim and each.headline]
    assert "contradicted" in headlines


# Differences ----------------------------------------------------------------------------------------------------


def test_differences_by_hand() -> None:
    d = torch.tensor([[1.0, -2.0, 0.0, 3.0]], dtype=torch.float64)
    assert alike(d, 2)[0].tolist() == pytest.approx([(-2 + 0 + 0) / 14, (0 - 6) / 14])
    assert effective_number(d).item() == pytest.approx(14**2 / (1 + 16 + 81))
    one, same = torch.eye(9)[:1].double(), torch.ones(1, 9, dtype=torch.float64)
    assert (effective_number(one).item(), effective_number(same).item()) == (1.0, 9.0)
    many = torch.randn(200, 4000, generator=torch_generator("steps"), dtype=torch.float64)
    assert float(effective_number(many).mean()) == pytest.approx(4000 / 3, rel=0.02)


def steps(kind: str, series: int = 40) -> pd.DataFrame:
    return series_steps.function(SeriesSteps(kind, tuple(range(100, 100 + series)), series=4000), Bench())


@pytest.fixture(scope="module")
def shown_steps() -> Results:
    """Brown noise of two sets of seeds, and what is not brown noise."""
    other = steps("brown").assign(model="other brown", run=lambda table: table["run"] + 1000)
    tables = [
        *(steps(kind) for kind in ("brown", "step", "line")),
        other[other["quantity"].isin(["acf", "jumps"])],
    ]
    return Results(None, [Part(series_steps.name, "draws", table) for table in tables])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("other brown", ["holds", "holds", "holds"]),
        ("step", ["holds", "holds", "contradicted"]),
        ("line", ["contradicted", "contradicted", "holds"]),
    ],
)
def test_only_brown_noise_resembles_brown_noise(shown_steps: Results, kind: str, expected: list[str]) -> None:
    """The ACF lets all three pass: by differences one step has too few, and a line's are all alike."""
    claim = Claim("c", "C.", lambda found: by_differences(found, kind, "here", True), RESEMBLES, "distance")
    found = judge(dataclasses.replace(STUDY, claims=(claim,)), shown_steps, "quick")
    assert [row.verdict for row in found] == expected
    *_, jumps = found
    assert jumps.statistic == pytest.approx({"other brown": 0.0, "step": 2.0, "line": -0.5}[kind], abs=0.05)


def test_the_acf_cannot_tell_a_step_or_a_line_from_brown_noise(noises: Results) -> None:
    for series in (
        torch.linspace(0, 1, 256)[None],
        (torch.arange(256)[None] >= torch.arange(60, 196)[:, None]),
    ):
        acfs = pd.DataFrame(
            autocorrelation(series.double(), range(16)).values.numpy(), columns=list(map(float, range(16)))
        )
        rows = list(resembling(noises, "brown", acfs, "here"))
        assert all(row.headline for row in rows)
        assert all(abs(sum(row.samples[0]) / len(row.samples[0])) < 1 for row in rows)


def test_differences_are_those_of_other_networks(results: Results) -> None:
    calls = STUDY.stages[0](Results(SETTINGS))
    seen = {seed for call in calls if call.trial is gradients for seed in call.settings.seeds}
    fresh = {seed for call in calls if call.trial is network_steps for seed in call.settings.seeds}
    assert (len(seen), len(fresh), seen & fresh) == (6, 6, set())
    rows = steps_of(results, shallow(24), "jumps")
    assert rows["run"].tolist() == sorted(fresh)
    table = network_steps.function(NetworkSteps(shallow(24), (0,), 128, 8), Bench())
    values = gradient_of(shallow(24), 128).double()
    assert table.loc[table["quantity"] == "jumps", "value"].item() == pytest.approx(
        effective_number(values.diff()[None]).item(), rel=1e-4
    )


def test_a_gradient_of_one_jump_is_not_brown(results: Results, changed: Callable[..., Results]) -> None:
    other = changed(results, 1.0, network_steps, quantity="jumps", biases=1.0)
    rows = [row for row in judge(STUDY, other, "quick") if row.claim == "shallow-brown" and row.headline]
    assert rows[-1].statistic == pytest.approx(2.0)
    assert "contradicted" in {row.verdict for row in rows}


def test_figure_2_shares_the_networks() -> None:
    def keys(study: Study, scale: str) -> set[str]:
        return {call.key(fingerprint) for call in study.stages[0](Results(study.settings[scale]))}

    for scale in ("quick", "paper"):
        # Both noises; plain nets of 24 layers with each normalisation and resnets of 50 with each β, by twenties.
        groups = STUDY.settings[scale].runs // 20
        assert len(keys(STUDY, scale) & keys(figure_2.STUDY, scale)) == 2 + (3 + 2) * groups


def test_the_figure_has_five_columns(results: Results) -> None:
    axes = STUDY.figure(results).axes
    assert len(axes) == 2 * 5 + 1
    titles = [ax.get_title(loc="center") for ax in axes[:5]]
    assert titles == [
        "1-layer\nfeedforward",
        "12-layer\nfeedforward",
        "10-layer\nresnet, β = .1",
        "Brown\nnoise",
        "White\nnoise",
    ]
    assert {ax.get_xlabel() for ax in axes[:10]} == {"input $x$"}
    colours = [ax.get_lines()[0].get_color() for ax in axes[:5]]
    assert colours == [colour_of("plain")] * 2 + ["#56B4E9", NOISE["brown"], NOISE["white"]]
    drawn = axes[0].get_lines()[0].get_ydata()
    centred = drawn - drawn.mean()
    image = np.asarray(axes[5].get_images()[0].get_array())
    assert image.diagonal() == pytest.approx(centred**2 / centred.var())
