"""CONTRIBUTING walks from an empty file to a study with verdicts; this follows it to the letter."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def the_file() -> str:
    section = GUIDE.read_text().split("## Writing a study")[1]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


def skiplab(*words: str, folder: Path) -> str:
    command = [sys.executable, "-m", "skiplab", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("executor", [pytest.param("serial", marks=pytest.mark.slow), "processes"])
def test_the_walk_ends_in_a_verdict(executor: str, tmp_path: Path) -> None:
    (tmp_path / "figure_1.py").write_text(the_file())
    (tmp_path / "figure_1.md").write_text(
        "# Skips keep gradients\n\n## Caption\n\nGradients with and without.\n"
    )
    shown = skiplab("run", "figure_1.py", "--executor", executor, "--store", "here", folder=tmp_path)
    assert "✓ holds: Skips keep gradients. (ours, log norm)" in shown
    assert "✓ holds" in shown
    (run,) = (tmp_path / "here/studies/mine2026/figure-1").glob("*/run.json")
    (row,) = json.loads(run.read_text())["verdicts"]
    assert (row["verdict"], row["runs"]) == ("holds", 20)
    assert (run.parent / "figure.png").exists()


def test_the_walk_is_short() -> None:
    lines = [line for line in the_file().splitlines() if line.strip()]
    assert len(lines) < 60
