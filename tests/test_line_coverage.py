"""The share of lines that tests run is counted as coverage.py would, in one process and in several."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PART = "tests/test_randomness.py"


def run(*command: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV"))}
    return subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, env=inherited, capture_output=True, text=True, check=False
    )


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> float:
    """What coverage.py's own tracer finds of the same tests."""
    folder = tmp_path_factory.mktemp("coverage")
    data = f"--data-file={folder / 'data'}"
    assert run("coverage", "run", data, "-m", "pytest", PART).returncode == 0
    run("coverage", "json", data, "--fail-under=0", "-o", str(folder / "found.json"))
    return json.loads((folder / "found.json").read_text())["totals"]["percent_covered"]


@pytest.mark.slow
@pytest.mark.parametrize("processes", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_lines_are_counted_as_by_coverage_py_and_too_few_fail(
    processes: tuple[str, ...], expected: float
) -> None:
    ran = run("pytest", "-p", "tests.line_coverage", *processes, PART)
    found = re.search(r"([\d.]+) % of the lines were run; the floor is 92 %", ran.stdout)
    assert found is not None, ran.stdout + ran.stderr
    assert float(found[1]) == pytest.approx(expected, abs=0.01)
    assert 0 < expected < 92
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED
    assert "passed" in ran.stdout
    assert "failed" not in ran.stdout
