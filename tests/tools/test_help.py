"""Every tool says what it does when asked, and does nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from oracles.tools_by_path import TOOLS

ROOT = TOOLS.parent


@pytest.mark.parametrize("tool", sorted(TOOLS.glob("*.py")), ids=lambda tool: tool.stem)
def test_help_explains_and_writes_nothing(tool: Path, tmp_path: Path) -> None:
    def state() -> dict[Path, int]:
        package = ROOT / "src" / "skiplab"
        written = [*ROOT.glob("*.md"), *ROOT.glob("docs/*"), *package.glob("**/*.json")]
        written += package.glob("published/**/*.webp")
        return {path: path.stat().st_mtime_ns for path in written}

    before = state()
    told = subprocess.run([sys.executable, tool, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert told.returncode == 0, told.stderr
    assert "python tools/" in told.stdout
    assert (state(), list(tmp_path.iterdir())) == (before, [])
