"""Figure S2's networks are the paper's, which trials are named, and what claims say of tables of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import torch

from skiplab.checks import Refused
from skiplab.data import TensorSet
from skiplab.experiments import building, networks
from skiplab.experiments.narrow_networks import NARROW
from skiplab.experiments.networks import SQRT2, Member, Networks, Training
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018 import figure_s2
from skiplab.studies.orhan2018.figure_s2 import trials

SETTINGS = dataclasses.replace(
    figure_s2.STUDY.settings["smoke"],
    runs=16,
    other_runs=14,
    extremes=6,
    gains=(0.3, SQRT2),
    shown_gains=(1.0,),
)
Network = tuple[int, float, Mapping[str, float]]  # seed, accuracy, what was measured at epochs 0 and 1


def made(stage: str, gain: float, found: Sequence[Network]) -> Part:
    """The networks of a stage at one gain."""
    rows: list[dict[str, Any]] = []
    for member, (_, accuracy, values) in enumerate(found):
        common = {"member": member, "layer": 0}
        start = 2.0 - 0.01 * (member * 5 % 7)
        rows.append(common | {"epoch": 1, "quantity": "accuracy", "value": accuracy})
        rows += [
            # Norms start at 2, with a random part, from which learning takes them away by what is given.
            common
            | {"epoch": epoch, "quantity": name, "value": start + epoch * value if name == "norm" else value}
            for epoch in (0, 1)
            for name, value in values.items()
        ]
    seeds = tuple(seed for seed, _, _ in found)
    settings = Networks("digits", "plain", seeds, (gain,) * len(seeds), Training())
    return Part("", stage, networks.table(settings, rows, [False] * len(seeds)))


def searched(**changes: Any) -> Results:
    """A search in which √2 is best."""
    accuracies = {0.3: 0.1, SQRT2: 0.5}
    parts = [made(NARROW.search, gain, [(500, value, {})]) for gain, value in accuracies.items()]
    return Results(dataclasses.replace(SETTINGS, **changes), parts)


def group(gain: float, count: int, sign: float, lost: int | None) -> Part:
    """Networks whose accuracy grows with the seed; with sign 1 all else goes with it as the paper says."""
    found: list[Network] = []
    for seed in range(count):
        up = sign * seed / count
        wobble = 0.003 * (seed * 7 % 5)
        values = {
            "degenerate": 0.5 - 0.3 * up + wobble,
            "negative": 0.2 + 0.1 * up + wobble,
            "norm": up + wobble,
            "test_accuracy": 0.1 + 0.1 * up,
        }
        if seed == lost:
            del values["norm"]
        found.append((seed, 0.1 + seed / 100, values))
    return made(NARROW.decide, gain, found)


def found(sign: float = 1.0, lost: int | None = None) -> Results:
    return searched().and_then([group(SQRT2, 16, sign, lost), group(1.0, 14, sign, lost)])


# Networks ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "count"), [("paper", 4852), ("quick", 1092)])
def test_the_networks_have_as_many_parameters_as_the_caption_says(scale: str, count: int) -> None:
    settings = figure_s2.STUDY.settings[scale]
    named = networks.together(settings.narrow_training, "cifar100-coarse", "plain", [Member(0, 1.0)])
    inputs = torch.zeros(1, settings.narrow_components)
    samples = TensorSet(inputs, torch.zeros(1, dtype=torch.int64), 20, "cifar100-coarse", "")
    network = building.build(named, samples, 0, 1.0)
    assert sum(tensor.numel() for tensor in network.parameters()) == count
    assert f"{count:,}" in figure_s2.STUDY.caption


def test_the_paper_scale_is_the_papers() -> None:
    paper = figure_s2.STUDY.settings["paper"]
    assert (paper.runs, paper.extremes, paper.wide_runs) == (400, 40, 0)


@pytest.mark.parametrize("present", [True, False])
def test_test_accuracy_needs_test_images(present: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "has_split", lambda name, split: present or split == "train")
    (call,) = trials.decide(searched(shown_gains=()))
    assert call.settings.test is present
    assert call.settings.exact == SETTINGS.samples


def test_where_the_set_is_missing_the_published_networks_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "has_split", lambda name, split: False)
    (call,) = trials.decide(searched(shown_gains=()))
    assert call.settings.test


def test_networks_are_trained_at_the_best_gain_and_at_the_shown_ones() -> None:
    calls = [call.settings for call in trials.decide(searched())]
    assert [(each.networks.gains[0], len(each.networks.seeds)) for each in calls] == [(SQRT2, 16), (1.0, 14)]
    for each in calls:
        assert each.networks.training == SETTINGS.narrow_training
        assert (each.exact, each.units, each.extremes, each.at) == (40, 40, 6, (0, 1))
        assert each.networks.seeds[0] == 0


def test_what_is_left_out_is_not_trained() -> None:
    def named(**changes: Any) -> list[tuple[float, int]]:
        calls = [call.settings.networks for call in trials.decide(searched(**changes))]
        return [(call.gains[0], len(call.seeds)) for call in calls]

    assert named(other_runs=0) == [(SQRT2, 16)]
    assert named(shown_gains=()) == [(SQRT2, 16)]
    assert named(shown_gains=(SQRT2,)) == [(SQRT2, 16)]
    assert len(trials.search(Results(SETTINGS))) == 1
    with pytest.raises(Refused, match="is 1, but must be at least 2"):
        named(runs=1)


def test_no_network_is_both_best_and_worst_whatever_the_overrides() -> None:
    (call,) = trials.decide(searched(runs=5, shown_gains=()))
    assert call.settings.extremes == 2


# Claims --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sign", "verdict"), [(1.0, "holds"), (-1.0, "contradicted")])
def test_claims_follow_the_groups(sign: float, verdict: str) -> None:
    rows = judge(figure_s2.STUDY, found(sign), "quick")
    headlines = [row for row in rows if row.headline]
    assert {row.claim for row in headlines} == {claim.id for claim in figure_s2.STUDY.claims}
    assert {row.verdict for row in headlines} == {verdict}
    assert {row.runs for row in rows} == {6}
    assert {row.condition for row in headlines} == {"epoch 1, digits, gain 1.41", "digits, gain 1.41"}


def test_glorots_gain_is_judged_where_networks_learn_there() -> None:
    learning = made(NARROW.search, 1.0, [(500, 0.2, {})])
    rows = judge(figure_s2.STUDY, found().and_then([learning]), "quick")
    assert {row.condition for row in rows if row.headline} == {"epoch 1, digits, gain 1", "digits, gain 1"}


def test_differences_are_those_of_the_groups() -> None:
    rows = judge(figure_s2.STUDY, found(), "quick")
    (norm,) = (row for row in rows if row.headline and row.claim == "best-larger-norms")
    # Seeds 10–15 against 0–5 of 16, and the wobbles 0, 6, 12, 3, 9 thousandths of seeds 0–4, in turn.
    wobble = (0.0 + 6 + 12 + 3 + 9 + 0) / 6000
    assert norm.means == pytest.approx((12.5 / 16 + wobble, 2.5 / 16 + wobble), abs=1e-6)
    further = {row.condition for row in rows if row.claim == "best-larger-norms" and not row.headline}
    assert further == {
        "epoch 0, digits, gain 1.41",
        *(f"epoch {epoch}, digits, gain 1" for epoch in (0, 1)),
    }


def test_a_network_that_diverged_is_missed_by_name() -> None:
    rows = judge(figure_s2.STUDY, found(lost=2), "quick")
    (norm,) = (row for row in rows if row.headline and row.claim == "best-larger-norms")
    assert norm.runs == 5
    assert norm.detail == "1 of these networks diverged and was not measured"


def test_the_figure_has_a_row_per_condition() -> None:
    drawn = figure_s2.STUDY.figure(found())
    rows = [ax.get_ylabel().replace("\n", ", ") for ax in drawn.axes[::5]]
    assert rows == ["Digits, 3 × 4 units, gain 1.41", "Digits, 3 × 4 units, gain 1"]
    for ax in drawn.axes[:5]:
        best, worst = (line.get_ydata() for line in ax.get_lines())
        assert (best != worst).all()
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == ["Best 6", "Worst 6"]
