"""Figure 12's stages, its trial and its claims, the latter on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import pandas as pd
import pytest

from skiplab.checks import Refused
from skiplab.experiments import networks
from skiplab.experiments.networks import Member, Training
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017.figure_12 import STUDY
from skiplab.studies.orhan2017.figure_12.profiles import (
    DECREASING,
    INCREASING,
    KINDS,
    PROFILES,
    ProfileSettings,
    kind_of,
)
from skiplab.studies.orhan2017.figure_12.study import decide, search
from skiplab.studies.orhan2017.figure_12.trials import constant_or_start, train_and_rescale
from skiplab.studies.orhan2017.rescaled_networks import Rescaled

SETTINGS = dataclasses.replace(
    STUDY.settings["smoke"],
    runs=7,
    other_runs=6,
    search_runs=2,
    gains=(0.3, 1.0),
    slopes=(0.0, -0.1, -0.2),
    rising=(0.1,),
    offsets=(0.0, 0.5),
)
Line = tuple[float, float]
CHOSEN: dict[str, Line] = {
    "plain": (0.0, 0.0),
    "constant": (0.0, 0.5),
    "decreasing": (-0.2, 0.5),
    "increasing": (0.1, 0.0),
}


def rows_of(line: Line, gain: float, seed: int, values: dict[str, float]) -> pd.DataFrame:
    member = Member(seed, gain, slope=line[0], offset=line[1])
    named = networks.together(Training(epochs=1), "digits", "bias-profile", [member])
    common: dict[str, Any] = {"member": 0, "epoch": 1, "layer": 0}
    rows = [common | {"quantity": quantity, "value": value} for quantity, value in values.items()]
    return networks.table(named, rows, [False])


def searched(*tables: pd.DataFrame) -> Results:
    """These tables as what the first stage left."""
    return Results(SETTINGS, [Part(networks.train.name, "search", table) for table in tables])


# Gain 1 is better than .3 by .2, and within a kind the profile that is to be chosen is best by .1.
SEARCHED = searched(
    *(
        rows_of(line, gain, seed, {"accuracy": 0.3 + 0.2 * (gain == 1.0) + 0.1 * (line in CHOSEN.values())})
        for line in SETTINGS.profiles
        for gain in SETTINGS.gains
        for seed in (500, 501)
    )
)


def results_of(accuracy: dict[str, float], ratio: dict[str, float]) -> Results:
    decided = [
        rows_of(
            line,
            gain,
            seed,
            {
                "accuracy": accuracy[kind] * gain + seed / 1000,
                "before": 0.9,
                "chance": 0.1,
                "rescaling": 1.0 if kind == "plain" else ratio[kind] + seed / 1000,
                "whole_rescaling_change": 1e-14,
            },
        )
        for kind, line in CHOSEN.items()
        for gain in SETTINGS.gains
        for seed in range(7 if gain == 1.0 else 6)
    ]
    call = decide(SEARCHED)[-1]
    start = Part(constant_or_start.name, call.stage, constant_or_start.function(call.settings, Bench()))
    trained = [Part(train_and_rescale.name, "decide", table) for table in decided]
    return SEARCHED.and_then([*trained, start])


AS_PRINTED = results_of(
    {"plain": 0.3, "constant": 0.5, "decreasing": 0.8, "increasing": 0.4},
    {"constant": 0.8, "decreasing": 0.6, "increasing": 0.7},
)


def verdicts(results: Results) -> dict[tuple[str, str], Any]:
    return {(row.claim, row.condition): row for row in judge(STUDY, results, "quick")}


def test_profiles_are_the_papers_and_their_mirror_images() -> None:
    settings = ProfileSettings()
    assert len(settings.profiles) == len(set(settings.profiles)) == 45
    papers = [(slope, offset) for slope, offset in settings.profiles if slope <= 0]
    assert len(papers) == 25
    assert sorted(settings.rising) == sorted(-slope for slope in settings.slopes if slope)
    assert [kind_of(*line) for line in ((0, 0), (0, 0.03), (-0.003, 0), (0.003, 0.12))] == list(KINDS)


def test_a_grid_without_a_kind_is_refused() -> None:
    with pytest.raises(Refused, match="have no decreasing profile; include slopes 0, below and above it"):
        dataclasses.replace(SETTINGS, slopes=(0.0,))
    with pytest.raises(Refused, match=r"offsets \(0\.0,\) have no constant or increasing profile"):
        dataclasses.replace(SETTINGS, offsets=(0.0,), rising=())


def test_the_whole_grid_trains_as_one_batch_per_gain() -> None:
    settings = ProfileSettings()
    calls = search(Results(settings))
    assert [set(call.settings.gains) for call in calls] == [{gain} for gain in settings.gains]
    for call in calls:
        points = list(zip(call.settings.slopes, call.settings.offsets, call.settings.seeds, strict=True))
        assert len(points) == len(set(points)) == 45 * 5
        assert min(call.settings.seeds) == 500


def test_the_best_profile_of_a_kind_is_taken_by_its_mean_at_one_gain() -> None:
    found = searched(
        rows_of((-0.1, 0.0), 1.0, 500, {"accuracy": 0.9}),
        rows_of((-0.1, 0.0), 1.0, 501, {"accuracy": 0.1}),
        rows_of((-0.2, 0.0), 1.0, 500, {"accuracy": 0.6}),
        rows_of((-0.2, 0.0), 1.0, 501, {"accuracy": 0.6}),
        rows_of((-0.2, 0.5), 0.3, 500, {"accuracy": 0.9}),
        rows_of((0.1, 0.5), 1.0, 500, {"accuracy": 0.8}),
    )
    best = functools.partial(PROFILES.best_profile, found, "digits")
    assert best(DECREASING, 1.0) == {"slope": -0.2, "offset": 0.0}
    assert best(DECREASING, 0.3) == {"slope": -0.2, "offset": 0.5}
    assert best(INCREASING, 1.0) == {"slope": 0.1, "offset": 0.5}
    assert PROFILES.best_gain(found, "digits", DECREASING) == 0.3


def test_what_the_search_found_is_trained_on_other_seeds_and_rescaled() -> None:
    *calls, start = decide(SEARCHED)
    found = [call.settings.networks for call in calls]
    assert [set(zip(each.slopes, each.offsets, strict=True)) for each in found] == [
        {CHOSEN[kind.name]} for kind in KINDS
    ]
    assert all(each.seeds == (*range(6), *range(7)) for each in found)
    assert all(each.gains == (0.3,) * 6 + (1.0,) * 7 for each in found)
    assert calls[0].label == "digits, bias-profile, plain, 13 networks, rescaled"
    assert (start.settings.slope, start.settings.offset) == (-0.1, 0.5)
    assert calls[0].settings.data == "digits"


def test_dead_networks_are_shown_beside_the_headline() -> None:
    """Two of seven decreasing ones at chance: the headline is about the others, on the same seeds."""
    parts = []
    for part in AS_PRINTED.parts:
        table = part.table
        dead = table["quantity"].eq("accuracy") & table["seed"].isin([0, 1]) & table["slope"].eq(-0.2)
        parts.append(dataclasses.replace(part, table=table.assign(value=table["value"].mask(dead, 0.1))))
    found = verdicts(Results(SETTINGS, parts))
    words = "digits, best gains (1)"
    alive = found["decreasing-beats-constant", f"{words}, those that learn"]
    every = found["decreasing-beats-constant", words]
    assert (alive.headline, alive.runs, alive.verdict) == (True, 5, "holds")
    assert alive.statistic == pytest.approx(0.3, abs=1e-6)
    assert alive.detail == "never learn: decreasing 2 of 7 (8 to 64 %)"
    assert (every.headline, every.runs) == (False, 7)
    assert every.statistic == pytest.approx((5 * 0.3 - 0.4 - 0.401) / 7, abs=1e-6)
    assert found["constant-beats-plain", words].headline


def test_a_profile_that_leaves_networks_dead_waits_for_a_longer_search() -> None:
    """More runs with the same profile would settle nothing about rescaling symmetry."""
    parts = []
    for part in AS_PRINTED.parts:
        table = part.table
        dead = table["quantity"].eq("before") & table["seed"].isin([0, 1]) & table["slope"].eq(-0.2)
        parts.append(dataclasses.replace(part, table=table.assign(value=table["value"].mask(dead, 0.1))))
    short = verdicts(Results(SETTINGS, parts))
    row = short["decreasing-less-symmetric", "digits, a profile that leaves none dead"]
    assert (row.headline, row.verdict, row.missing) == (True, "undecided", "not run")
    assert "--set search_runs=10 --set search_epochs=1)" in row.detail
    assert not short["decreasing-less-symmetric", "digits, best gains (1), all networks"].headline
    thorough = dataclasses.replace(SETTINGS, search_runs=10, search_epochs=SETTINGS.epochs)
    found = verdicts(Results(thorough, parts))
    headlines = [
        condition for (claim, condition), row in found.items() if row.headline and claim == row.claim
    ]
    assert "digits, best gains (1), all networks" in headlines
    assert not any("none dead" in condition for condition in headlines)


def test_profiles_that_were_not_chosen_have_no_part_in_a_comparison() -> None:
    """A kind's rows are those of its best profile, whatever others were trained at the same gain."""
    other = rows_of((-0.1, 0.5), 1.0, 0, {"accuracy": 1.0})
    results = AS_PRINTED.and_then([Part(train_and_rescale.name, "decide", other)])
    rows = PROFILES.at(results, "digits", DECREASING)
    assert set(zip(rows["slope"], rows["offset"], strict=True)) == {CHOSEN["decreasing"]}
    assert set(rows["gain"]) == {1.0}
    assert set(PROFILES.at(results, "digits", DECREASING, 0.3)["gain"]) == {0.3}


def test_every_claim_holds_where_the_paper_is_right() -> None:
    found = verdicts(AS_PRINTED)
    headlines = {claim: row for (claim, _), row in found.items() if row.headline}
    assert headlines.pop("generally-above-plain").verdict == "undecided"  # two search seeds are too few
    assert {claim: row.verdict for claim, row in headlines.items()} == {
        claim.id: "holds" for claim in STUDY.claims if claim.id in headlines
    }
    assert len(headlines) == len(STUDY.claims) - 1
    assert headlines["decreasing-beats-constant"].statistic == pytest.approx(0.3, abs=1e-6)
    assert headlines["positive-slopes-worse"].statistic == pytest.approx(0.4, abs=1e-6)
    assert headlines["decreasing-less-symmetric"].statistic == pytest.approx(0.2, abs=1e-6)
    assert headlines["decreasing-less-above-chance"].statistic == pytest.approx(0.2 * 0.9 / 0.8, abs=1e-5)
    assert ("constant-less-symmetric", "digits, gain 0.3") in found


def test_every_claim_of_the_paper_falls_where_it_is_wrong() -> None:
    results = results_of(
        {"plain": 0.8, "constant": 0.5, "decreasing": 0.3, "increasing": 0.9},
        {"constant": 1.2, "decreasing": 1.4, "increasing": 0.7},
    )
    found = {claim: row.verdict for (claim, _), row in verdicts(results).items() if row.headline}
    ours = {"whole-symmetric", "constant-is-a-start", "generally-above-plain"}
    assert {claim: verdict for claim, verdict in found.items() if claim not in ours} == {
        claim.id: "contradicted" for claim in STUDY.claims if claim.id not in ours
    }


@pytest.mark.parametrize(
    ("above", "verdict"), [(0.1, "holds"), (0.004, "contradicted"), (-0.1, "contradicted")]
)
@pytest.mark.slow
def test_all_of_the_papers_profiles_are_compared_with_none(above: float, verdict: str) -> None:
    """The rising one counts for nothing, and those that never learn are told and left out of a further row."""

    def accuracy(line: Line, seed: int) -> float:
        if line[0] > 0:
            return 1.0
        if line == (-0.2, 0.0):
            return 0.1  # never learns
        return 0.5 + (seed % 500) / 1000 + above * (line != (0.0, 0.0))

    tables = [
        rows_of(line, 1.0, seed, {"accuracy": accuracy(line, seed)})
        for line in SETTINGS.profiles
        for seed in range(500, 510)
    ]
    claim = next(claim for claim in STUDY.claims if claim.id == "generally-above-plain")
    one, found = dataclasses.replace(STUDY, claims=(claim,)), searched(*tables)
    thorough = dataclasses.replace(SETTINGS, search_runs=10, search_epochs=SETTINGS.epochs)
    every, alive = judge(one, Results(thorough, found.parts), "quick")
    assert (every.headline, alive.headline) == (False, True)
    assert (alive.condition, alive.verdict) == ("digits, gain 1, 5 profiles, those that learn", verdict)
    assert alive.statistic == pytest.approx(above, abs=1e-6)
    assert every.statistic == pytest.approx((4 * above - 0.4045) / 5, abs=1e-6)
    assert every.detail == "never learn: 10 of 50 (11 to 33 %) networks"
    short, *further = judge(one, found, "quick")  # two search seeds
    assert (short.headline, short.verdict) == (True, "undecided")
    assert "a verdict asks for 10" in short.detail
    assert not any(row.headline for row in further)


@pytest.mark.parametrize(
    ("quantity", "value", "claim"),
    [("whole_rescaling_change", 1e-6, "whole-symmetric"), ("difference", 1e-3, "constant-is-a-start")],
)
def test_one_network_that_disobeys_contradicts_our_statements(
    quantity: str, value: float, claim: str
) -> None:
    parts = []
    for part in AS_PRINTED.parts:
        off = (part.table["quantity"] == quantity) & (part.table["seed"] == 1)
        parts.append(
            dataclasses.replace(part, table=part.table.assign(value=part.table["value"].mask(off, value)))
        )
    found = verdicts(Results(SETTINGS, parts))
    against = {name for (name, _), row in found.items() if row.verdict == "contradicted"}
    assert against == {claim}


def test_trained_networks_are_rescaled() -> None:
    lines = ((0.0, 0.0), (0.5, 1.0), (-0.2, 0.5))
    members = [Member(seed, 2**0.5, slope=line[0], offset=line[1]) for line in lines for seed in (0, 1)]
    training = Training(depth=4, width=16, images=200, epochs=6, batch_size=20)
    named = networks.together(training, "digits", "bias-profile", members)
    frame = train_and_rescale.function(Rescaled(named, 100, pairs=8), Bench())
    assert (frame.loc[frame["quantity"] == "whole_rescaling", "value"] == 1).all()
    changes = frame.pivot_table(index=["slope", "seed"], columns="quantity", values="value", observed=True)
    assert (changes["whole_rescaling_change"] < 1e-12).all()
    assert ((changes["rescaling_change"] < 1e-12) == (changes.index.get_level_values("slope") == 0)).all()
    ratios = frame[frame["quantity"] == "rescaling"].set_index(["slope", "offset"])["value"]
    assert ratios[0.0, 0.0].tolist() == [1.0, 1.0]
    for line in lines[1:]:
        assert (ratios[line] != 1).all()
        assert ratios[line].nunique() == 2


def test_a_gain_without_runs_gives_no_evidence() -> None:
    at_best = [
        part for part in AS_PRINTED.parts if part.stage == "search" or (part.table["gain"] != 0.3).all()
    ]
    found = verdicts(Results(SETTINGS, at_best))["decreasing-beats-constant", "digits, gain 0.3"]
    assert (found.verdict, found.runs) == ("undecided", 0)


def test_the_figure_has_the_papers_panels_and_ours() -> None:
    figure = STUDY.figure(AS_PRINTED)
    lines, symmetry, curves, grid, gains, by_gain = figure.axes
    assert len(lines.get_lines()) == len(SETTINGS.profiles) + len(KINDS)
    assert [text.get_text() for text in symmetry.get_xticklabels()] == [
        "Plain",
        "Constant",
        "Decreasing",
        "Increasing",
    ]
    assert len(curves.get_lines()) == len(KINDS)
    assert grid.get_title(loc="left") == "accuracy in %, search, gain 1"
    assert [text.get_text() for text in grid.get_yticklabels()] == ["0.1", "0", "-0.1", "-0.2"]
    assert gains.get_xlabel() == by_gain.get_xlabel() == "initial gain g"
    for ax in (gains, by_gain):
        names = [text.get_text() for text in ax.get_legend().get_texts()]
        assert names == ["Plain", "Constant", "Decreasing", "Increasing"]
