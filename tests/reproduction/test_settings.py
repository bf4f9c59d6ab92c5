"""Overrides: typed, checked, remembered; data sets that are not here are left out by name."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from counted_studies import COUNT, WITH_DATA

from skiplab.checks import DataMissing, Refused
from skiplab.reproduction.settings import choose, parse, parse_duration, settings_of
from skiplab.reproduction.study import Study
from skiplab.studies import CATALOGUE


@pytest.fixture
def no_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any image set but digits."""
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path / "no sets"))


def test_without_overrides_nothing_deviates() -> None:
    chosen = choose(COUNT, "quick", {})
    assert chosen.settings == COUNT.settings["quick"]
    assert (chosen.deviations, chosen.left_out, chosen.name) == ({}, [], "quick")


def test_overrides_are_typed_and_show_as_deviations() -> None:
    chosen = choose(COUNT, "quick", {"runs": 9, "gains": "0.1, 2", "limit": "3", "fast": "true"})
    settings = chosen.settings
    assert (settings.runs, settings.gains, settings.limit, settings.fast) == (9, (0.1, 2.0), 3, True)
    assert chosen.deviations["runs"] == {"declared": 6, "used": 9}
    assert chosen.deviations["gains"] == {"declared": [0.3, 1.0], "used": [0.1, 2.0]}
    assert chosen.name.startswith("quick+")
    again = choose(COUNT, "quick", {"fast": True, "limit": 3, "gains": [0.1, 2.0], "runs": 9})
    assert again == chosen
    assert again.name == chosen.name
    assert choose(COUNT, "quick", {"runs": 8}).name != choose(COUNT, "quick", {"runs": 9}).name


@pytest.mark.parametrize("same", [{"runs": 6}, {"gains": [0.3, 1.0]}, {"gains": "0.3,1"}, {"limit": "none"}])
def test_an_override_that_changes_nothing_is_no_deviation(same: dict[str, Any]) -> None:
    chosen = choose(COUNT, "quick", same)
    assert chosen.deviations == {}
    assert hash(chosen.settings) == hash(COUNT.settings["quick"])


def test_wrong_settings_are_refused_with_a_remedy() -> None:
    with pytest.raises(Refused, match=r"no setting 'run'; it has runs, seed.* Did you mean runs"):
        choose(COUNT, "quick", {"run": 3})
    with pytest.raises(Refused, match=r"scale 'papper' is unknown.*Did you mean paper"):
        choose(COUNT, "papper", {})
    with pytest.raises(Refused, match=r"runs is 0, but must be at least 1"):
        choose(COUNT, "quick", {"runs": 0})
    with pytest.raises(Refused, match=r"setting runs takes a whole number, not '1.5'"):
        choose(COUNT, "quick", {"runs": "1.5"})
    with pytest.raises(Refused, match=r"setting fast takes true or false, not 'maybe'"):
        choose(COUNT, "quick", {"fast": "maybe"})
    with pytest.raises(Refused, match=r"setting gains takes a number, not 'x'"):
        choose(COUNT, "quick", {"gains": "1,x"})


def test_counts_and_lists_that_a_study_could_not_use_are_refused_before_any_trial() -> None:
    for key, value, sentence in (
        ("runs", "-3", r"runs is -3, but must be at least 1\."),
        (
            "gains",
            "",
            r"setting gains has no values, but needs at least one; leave it out or write gains=VALUE,…\.",
        ),
        ("gains", [], r"setting gains has no values"),
        ("seed", -1, r"seed is -1, but must be at least 0\."),  # declared as 0, so 0 is as good as any
    ):
        with pytest.raises(Refused, match=sentence):
            choose(COUNT, "quick", {key: value})
    assert choose(COUNT, "quick", {"seed": 0}).settings.seed == 0


@pytest.mark.parametrize("study", CATALOGUE.studies, ids=lambda study: study.id)
def test_every_study_takes_its_own_declared_values(study: Study) -> None:
    for settings in study.settings.values():
        mine = {key: value for key, value in vars(settings).items() if key != "data"}
        choose(study, "smoke", mine)


@pytest.mark.usefixtures("no_sets")
def test_a_missing_set_is_left_out_by_name() -> None:
    chosen = choose(WITH_DATA, "quick", {})
    assert chosen.settings.data == ("digits",)
    assert chosen.left_out == [{"part": "cifar10", "remedy": "skiplab data fetch cifar10"}]
    # What is missing here is not the user's deviation, and the run takes its place when the set has come.
    assert (chosen.deviations, chosen.name) == ({}, "quick")


@pytest.mark.usefixtures("no_sets")
def test_without_any_set_the_study_is_refused_with_the_way_out() -> None:
    with pytest.raises(
        DataMissing, match=r"toy2000/table-1 needs cifar10, not found in .*no sets; get it"
    ) as error:
        choose(WITH_DATA, "quick", {"data": ("cifar10",)})
    assert "`skiplab data fetch cifar10`" in str(error.value)
    assert "`skiplab run toy2000/table-1 --data digits`" in str(error.value)
    with pytest.raises(Refused, match=r"data set 'cifar' is unknown.*Did you mean cifar10"):
        choose(WITH_DATA, "quick", {"data": "cifar"})
    with pytest.raises(Refused, match=r"toy2000/table-1 needs a data set; name one of cifar10"):
        choose(WITH_DATA, "quick", {"data": ""})


def test_words_become_the_declared_type() -> None:
    assert parse("7", int | None, "x") == 7
    assert parse("None", int | None, "x") is None
    assert parse("a, b,", tuple[str, ...], "x") == ("a", "b")
    assert parse("0", bool, "x") is False


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("9m", 540), ("1.5 h", 5400)])
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "9x", "-3s", "m", "1m30"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(Refused, match=r"is not a duration; write 90s, 9m or 2h"):
        parse_duration(text)


def test_a_stored_run_keeps_its_settings_though_the_study_declares_others_by_now() -> None:
    @dataclass(frozen=True)
    class Earlier:
        runs: int = 5
        gains: tuple[float, ...] = (0.3, 1.0)
        mixed: bool = False  # added after the run was stored, with the old way as its default

    @dataclass(frozen=True)
    class Now(Earlier):
        gains: tuple[float, ...] = (0.3, 1.0, 2.0)
        mixed: bool = True

    study = replace(COUNT, settings={"paper": Now()})
    run: Any = SimpleNamespace(scale="paper", settings={"runs": 7, "gains": [0.3, 1.0]})
    assert settings_of(study, run) == Now(runs=7, gains=(0.3, 1.0), mixed=False)
