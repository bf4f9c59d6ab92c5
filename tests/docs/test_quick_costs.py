"""The tool that measures quick runs: what it measured is not measured again, and too much is marked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from oracles import tools_by_path
from skiplab.studies import CATALOGUE

TOOL = Path(__file__).parents[2] / "tools" / "quick_costs.py"
ONE, OTHER = "orhan2017/figure-3", "orhan2017/figure-4"


@pytest.fixture
def tool() -> ModuleType:
    """The tool as a module."""
    return tools_by_path.tool("quick_costs")


def row(study: str, times: float, problem: str = "") -> dict[str, Any]:
    return {"study": study, "wall": times * CATALOGUE[study].cost["quick"], "busy": 1.0, "problem": problem}


def test_studies_above_their_cost_by_half_are_marked_first(tool: ModuleType) -> None:
    lines = tool.table([row(ONE, 1.4), row(OTHER, 1.6)]).splitlines()
    assert lines[1].startswith(OTHER)
    assert lines[1].endswith("too much")
    assert lines[2].startswith(ONE)
    assert not lines[2].endswith("too much")
    assert lines[3].startswith("all 2")
    assert tool.table([row(ONE, 9.0, "skiplab: no data")]).splitlines()[1].endswith("  skiplab: no data")


def test_what_is_in_the_file_is_not_measured_again(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "costs.jsonl"
    out.write_text(json.dumps(row(ONE, 1.0)) + "\n")
    ran: list[tuple[str, str]] = []

    def measure(study: str, store: Path) -> dict[str, Any]:
        ran.append((study, store.name))
        return row(study, 1.0)

    monkeypatch.setattr(tool, "measure", measure)
    monkeypatch.setattr(sys, "argv", ["quick_costs.py", ONE, OTHER, "--together", "--out", str(out)])
    tool.main()
    assert ran == [(OTHER, "costs.store")]
    assert [json.loads(line)["study"] for line in out.read_text().splitlines()] == [ONE, OTHER]
    assert "all 2" in capsys.readouterr().out


def test_a_study_runs_in_a_process_of_its_own_and_a_failure_is_said(tool: ModuleType, tmp_path: Path) -> None:
    failed = tool.measure("orhan2017/figure-33", tmp_path)
    assert "there is no study 'orhan2017/figure-33'" in failed["problem"]
    assert failed["wall"] > 0
