"""The table of verdicts over seeds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from skiplab.reproduction.store import Store
from skiplab.studies import CATALOGUE

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reruns_tool", ROOT / "tools" / "reruns.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.mark.parametrize(
    ("signs", "flips"), [("✓✓✓", False), ("✓?✓", False), ("?✗✗", False), ("✓?✗", True), ("", False)]
)
def test_only_holding_and_contradicted_together_flip(tool: ModuleType, signs: str, flips: bool) -> None:
    assert tool.flips(signs) is flips


def test_the_table_counts_and_names_what_is_not_the_same(tool: ModuleType) -> None:
    text = tool.written({"a/figure-1": {"x": "✓✓", "y": "✓?", "z": "✗✓"}}, range(1, 3))
    assert "1 studies at quick scale with seeds 1 to 2" in text
    assert "Of 3 claims, the papers' and ours, 1 flip" in text
    assert "| `a/figure-1` | 3 | 1 | 1 | 1 |" in text
    assert "- `a/figure-1` y: ✓?" in text
    assert " x: " not in text


def test_ten_studies_are_rerun_and_exist(tool: ModuleType) -> None:
    assert len(set(tool.CHEAP)) == 10
    assert all(CATALOGUE[name].cost["quick"] <= 15 for name in tool.CHEAP)


@pytest.mark.slow
def test_no_verdict_of_a_cheap_study_flips_over_five_seeds(tool: ModuleType, tmp_path: Path) -> None:
    """Figure 4 did, before its range had a test."""
    names = ["orhan2017/section-2.5", "orhan2017/note-4", "orhan2017/figure-4"]
    found = tool.rerun(names, range(1, 6), Store(tmp_path))
    assert all(len(signs) == 5 for each in found.values() for signs in each.values())
    assert not [signs for each in found.values() for signs in each.values() if tool.flips(signs)]
