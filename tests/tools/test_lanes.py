"""tools/lanes.py: what lanes leave is what a run of the study finds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oracles.tools_by_path import TOOLS, tool
from skiplab.reproduction.runner import Options, Watcher, run_study
from skiplab.reproduction.store import Store
from skiplab.reproduction.study import Study
from skiplab.studies import CATALOGUE

TOOL = TOOLS / "lanes.py"
ITEM = "yu2019/figure-10"


class Counting(Watcher):
    def __init__(self) -> None:
        self.known: list[tuple[int, int]] = []

    def stage(self, study: Study, total: int, known: int) -> None:
        self.known.append((total, known))


def test_a_run_finds_what_lanes_left(tmp_path: Path) -> None:
    words = [f"{ITEM}: plain, 5 layers", f"{ITEM}: residual, 5 layers"]
    options = ["--device", "cpu", "--scale", "smoke", "--store", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, str(TOOL), *options, *words], check=True, capture_output=True, text=True
    )
    assert done.stdout.count("done in") == 2
    seen = Counting()
    run_study(CATALOGUE.select([ITEM])[0], Store(tmp_path), scale="smoke", options=Options(watcher=seen))
    assert seen.known == [(2, 2)]


def test_what_is_missing_gets_less_as_trials_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lanes = tool("lanes")
    options = ["--device", "cpu", "--scale", "smoke", "--store", str(tmp_path)]
    assert lanes.main([*options, "--missing", ITEM]) == 0
    both = capsys.readouterr().out.splitlines()
    assert [line.partition("   (")[0] for line in both] == [
        f"{ITEM}: plain, 5 layers",
        f"{ITEM}: residual, 5 layers",
    ]
    assert all("networks × " in line for line in both)
    assert lanes.main([*options, "--drive", f"{ITEM}: plain, 5 layers"]) == 0
    capsys.readouterr()
    assert lanes.main([*options, "--missing", ITEM]) == 0
    assert capsys.readouterr().out.splitlines() == both[1:]


def test_what_is_missing_is_not_asked_of_named_trials(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(SystemExit):
        tool("lanes").main(
            ["--store", str(tmp_path), "--scale", "smoke", "--missing", f"{ITEM}: plain, 5 layers"]
        )
    assert "--missing lists trials of whole studies" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_controls_can_run_before_what_they_control(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lanes = tool("lanes")
    options = ["--device", "cpu", "--scale", "smoke", "--store", str(tmp_path)]
    named = "yu2019/table-1: pilot, no momentum"
    assert lanes.main([*options, "--missing", "yu2019/table-1"]) == 0
    before = capsys.readouterr().out.splitlines()
    assert [line for line in before if line.startswith("yu2019/table-1: residual, 8 layers   (")]
    assert [line for line in before if line.startswith(f"{named}   (")]
    assert lanes.main([*options, "--drive", named]) == 0
    capsys.readouterr()
    assert lanes.main([*options, "--missing", "yu2019/table-1"]) == 0
    left = capsys.readouterr().out.splitlines()
    assert left == [line for line in before if not line.startswith(named)]


def test_trials_that_a_search_chooses_wait_for_it(tmp_path: Path) -> None:
    (study,) = CATALOGUE.select(["orhan2017/figure-7"])
    found = tool("lanes").named(study, "smoke", Store(tmp_path))
    assert found
    assert all("search" in label for label in found)


def test_names_are_listed_and_a_wrong_one_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool("lanes").main(["--scale", "smoke", ITEM]) == 0
    assert capsys.readouterr().out.splitlines() == [f"{ITEM}: plain, 5 layers", f"{ITEM}: residual, 5 layers"]
    with pytest.raises(SystemExit, match="names no trial 'plain, 6 layers'; it has:\nplain, 5 layers"):
        tool("lanes").main(["--scale", "smoke", f"{ITEM}: plain, 6 layers"])
