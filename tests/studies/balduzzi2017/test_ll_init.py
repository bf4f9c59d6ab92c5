from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
import torch

from skiplab.architectures.activations import CReLU
from skiplab.architectures.initialisers import standard_normal
from skiplab.data import TensorSet
from skiplab.randomness import torch_generator
from skiplab.remedies.linearity import departure_from_linear
from skiplab.reproduction import Bench, Results
from skiplab.reproduction.results import matching
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017.figure_6 import trials as thin
from skiplab.studies.balduzzi2017.ll_init.as_trained import TrainedStarts, as_trained
from skiplab.studies.balduzzi2017.ll_init.study import STUDY, Settings
from skiplab.studies.balduzzi2017.ll_init.trials import (
    AFTER_HE,
    CONV,
    FULL,
    LOOKS_LINEAR,
    THIN,
    LinearStarts,
    build,
    starts,
    step,
)

SETTINGS = Settings(
    runs=2, depths=(2, 5), rs=(1, 2), width=8, filters=4, side=4, thin_side=16, points=9, trained_runs=2
)


@pytest.fixture(scope="module")
def results(ran: Callable[..., Results]) -> Results:
    return ran(STUDY, SETTINGS)


@pytest.fixture(scope="module")
def table(results: Results) -> pd.DataFrame:
    return results.rows(starts)


def test_every_family_depth_and_start_is_measured(table: pd.DataFrame) -> None:
    counts = table.groupby(["family", "depth", "network", "quantity"]).size().unstack("quantity")
    assert len(counts) == 3 * 2 * 4
    assert (counts[["departure", "gradient", "stretch"]] == 2).all(axis=None)
    assert (counts[["output", "slope"]] == 9).all(axis=None)
    assert set(table.loc[table["quantity"] == "stepped", "network"]) == set(LOOKS_LINEAR)
    assert set(table.loc[table["family"] == THIN, "depth"]) == {6, 10}


def test_every_claim_holds_on_these_networks(results: Results) -> None:
    verdicts = judge(STUDY, results, "quick")
    assert len(verdicts) == 6 + 6 + 4 + 6 + 6 + 2 + 2
    assert {verdict.verdict for verdict in verdicts} == {"holds"}


@pytest.mark.parametrize(
    ("network", "quantity", "value", "claim"),
    [
        (LOOKS_LINEAR[0], "departure", 1e-9, "linear"),
        (LOOKS_LINEAR[1], "gradient", 1e-9, "linear"),
        (LOOKS_LINEAR[0], "stretch", 1e-9, "isometry"),
        (AFTER_HE[0], "departure", 1e-15, "he-not-linear"),
        (AFTER_HE[1], "departure", float("nan"), "he-not-linear"),
        (LOOKS_LINEAR[0], "stepped", 1e-15, "one-step"),
        (LOOKS_LINEAR[1], "stepped", 1e-15, "one-step-prelu"),
    ],
)
def test_one_network_that_disobeys_contradicts_its_claim(
    results: Results, changed: Callable[..., Results], network: str, quantity: str, value: float, claim: str
) -> None:
    other = changed(results, value, starts, family=CONV, network=network, quantity=quantity, draw=1, depth=5)
    verdicts = judge(STUDY, other, "quick")
    against = [v for v in verdicts if v.verdict == "contradicted"]
    words = {"departure": ", outputs", "gradient": ", gradient"}[quantity] if claim == "linear" else ""
    assert [(v.claim, v.condition) for v in against] == [(claim, f"{CONV}, {network}{words}")]
    if quantity in ("stepped", "departure") and claim != "linear":
        assert against[0].statistic == 1
        assert against[0].detail.startswith("1 of 4 networks are linear")


@pytest.mark.parametrize(
    ("quantity", "network", "claim", "verdict"),
    [
        ("departure", "without BN", "linear-as-trained", "contradicted"),
        ("departure", "with BN", "linear-as-trained", "holds"),
        ("rounding", "with BN", "single-precision", "contradicted"),
        ("rounding", "without BN", "single-precision", "holds"),
    ],
)
def test_networks_as_figure_6_trains_them_decide_their_own_claims(
    results: Results, changed: Callable[..., Results], quantity: str, network: str, claim: str, verdict: str
) -> None:
    other = changed(results, 0.5, as_trained, quantity=quantity, network=network, draw=1, depth=10)
    headlines = {row.claim: row for row in judge(STUDY, other, "quick") if row.headline}
    assert (headlines[claim].verdict, headlines[claim].source) == (verdict, "ours")


def test_rounding_compares_the_very_networks_of_figure_6() -> None:
    """One network by hand: float32 against float64 with the batch's own statistics."""
    frame = as_trained.function(TrainedStarts(6, (3,), 16, samples=5), Bench())
    x = standard_normal((5, 3, 16, 16), torch_generator(3, "as trained inputs"))
    images = TensorSet(x.float(), torch.zeros(5, dtype=torch.long), 10, "noise", "noise")
    net = thin.build(thin.ThinNetworks("noise", "crelu-ll", 6, (3,), thin.ThinTraining()), images, 3).train()
    with torch.no_grad():
        single, double = net(x.float()).double(), net.double()(x)
    single, double = single - single.mean(0), double - double.mean(0)
    cosines = (single * double).sum(1) / (single.norm(dim=1) * double.norm(dim=1))
    value = matching(frame, network="with BN", quantity="rounding")["value"].item()
    assert value == pytest.approx(float(1 - cosines.mean()), abs=1e-9)
    assert (matching(frame, quantity="departure")["value"] < 1e-12).all()


def test_counts_say_what_they_count_and_our_own_claims_are_marked() -> None:
    units = {claim.id: claim.unit for claim in STUDY.claims}
    assert units["he-not-linear"] == "networks that are linear"
    assert units["one-step"] == units["one-step-prelu"] == "networks still linear after one step"
    ours = {claim.id for claim in STUDY.claims if claim.source == "ours"}
    assert ours == {"isometry", "he-not-linear", "one-step-prelu", "single-precision", "linear-as-trained"}


@pytest.mark.parametrize("start", [*AFTER_HE, *LOOKS_LINEAR])
def test_thin_networks_are_measured_with_norms_that_do_something(start: str) -> None:
    """Only the thin trials draw statistics, so that those of the other families keep their keys."""
    calls = [call for call in STUDY.stages[0](Results(Settings(runs=1))) if call.trial is starts]
    assert {call.settings.family for call in calls if call.settings.random_norms} == {THIN}
    drawn = LinearStarts(THIN, 50, (0,), 0, 16, 5, random_norms=True)
    net, again, other = (build(drawn, start, seed)[0] for seed in (0, 0, 1))
    norms = [part for part in net.modules() if isinstance(part, torch.nn.BatchNorm2d)]
    variances, scales = (
        torch.cat([getattr(part, name).detach() for part in norms]) for name in ("running_var", "weight")
    )
    assert len(set(variances.tolist())) == len(variances)
    assert float((scales.square() / variances).mean()) == pytest.approx(1, abs=0.1)
    for name, value in net.state_dict().items():
        assert torch.equal(value, again.state_dict()[name])
    first = other.get_submodule("blocks.0.norm")
    assert not torch.equal(norms[0].running_mean, first.get_buffer("running_mean"))
    still = build(LinearStarts(THIN, 50, (0,), 0, 16, 5), start, 0)[0]
    for name, value in still.named_parameters():
        assert torch.equal(value, net.get_parameter(name)) or "norm" in name


def test_slopes_are_the_differences_of_the_outputs_where_the_network_is_linear(table: pd.DataFrame) -> None:
    for (_, _, network), part in table.groupby(["family", "depth", "network"]):
        output, slope = (part.loc[part["quantity"] == name].sort_values("x") for name in ("output", "slope"))
        steps = output["value"].diff().dropna().to_numpy() / 0.5
        straight = abs(steps - slope["value"].to_numpy()[1:]).max() < 1e-12 * abs(slope["value"]).max()
        assert straight == (network in LOOKS_LINEAR)


def test_thin_nets_lose_norm_at_their_strides_and_so_make_no_claim(table: pd.DataFrame) -> None:
    stretch = table[(table["quantity"] == "stretch") & table["network"].isin(LOOKS_LINEAR)]
    assert (stretch.loc[stretch["family"] == THIN, "value"] > 0.1).all()


@pytest.mark.parametrize("family", [FULL, CONV, THIN])
def test_the_crelu_networks_differ_in_their_start_alone(family: str) -> None:
    settings = LinearStarts(family, 6, (0,), 4, 16, 5)
    he, mirrored = (build(settings, start, 0)[0] for start in (AFTER_HE[1], LOOKS_LINEAR[0]))
    shapes = [{name: value.shape for name, value in net.named_parameters()} for net in (he, mirrored)]
    assert shapes[0] == shapes[1]
    assert any(isinstance(part, CReLU) for part in he.modules())
    shape = build(settings, AFTER_HE[1], 0)[1]
    example = torch.zeros(2, *shape, dtype=torch.float64)
    assert departure_from_linear(he, example, torch_generator(0)) > 0.1
    assert departure_from_linear(mirrored, example, torch_generator(0)) < 1e-13


def test_a_step_descends() -> None:
    net, _ = build(LinearStarts(FULL, 3, (0,), 6, 1, 5), LOOKS_LINEAR[0], 0)
    x, target = torch.randn(2, 8, 6, dtype=torch.float64, generator=torch_generator(1)).unbind()
    losses = []
    for _ in range(2):
        losses.append(float((net(x) - target).square().mean().detach()))
        step(net, x, target)
    assert losses[1] < losses[0]


def test_the_figure_has_a_column_per_start_and_a_line_per_depth(results: Results) -> None:
    figure = STUDY.figure(results)
    assert [ax.get_title(loc="left") for ax in figure.axes[:4]] == [*AFTER_HE, *LOOKS_LINEAR]
    assert len(figure.axes) == 16
    assert all(len(ax.get_lines()) == 2 for ax in figure.axes)
    legends = [ax.get_legend() for ax in figure.axes[3::4]]
    assert [legend.get_title().get_text() for legend in legends] == ["modules"] * 3 + ["layers"]
    figure.draw_without_rendering()
    for ax, legend in zip(figure.axes[3::4], legends, strict=True):  # beside its panel, not on it
        assert legend.get_window_extent().x0 >= ax.get_window_extent().x1
    flat = figure.axes[4 + 2].get_lines()[0].get_ydata()
    assert abs(flat - 1).max() < 1e-12


def test_trials_share_seeds_across_families() -> None:
    named = STUDY.stages[0](Results(Settings(runs=3, seed=4, depths=(2,), rs=(1, 3))))
    calls = [call for call in named if call.trial is starts]
    assert [(call.settings.family, call.settings.depth) for call in calls] == [
        (FULL, 2),
        (CONV, 2),
        (THIN, 6),
        (THIN, 14),
    ]
    assert {call.settings.seeds for call in calls} == {(4_000_000, 4_000_001, 4_000_002)}
