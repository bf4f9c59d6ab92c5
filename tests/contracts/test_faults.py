"""Every fault that was tried once has a test that tries it again, and tests/FAULTS.md says which."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROWS = re.findall(
    r"^\| (\d+[a-d]?) \| [^|]+ \| ([^|]+) \|$", (ROOT / "tests" / "FAULTS.md").read_text(), re.MULTILINE
)


def test_no_fault_is_left_out() -> None:
    assert [number for number, _ in ROWS] == ["0", "0b", "0c", "0d", *map(str, range(1, 17))]


@pytest.mark.parametrize(("number", "tests"), ROWS, ids=[number for number, _ in ROWS])
def test_the_tests_of_a_fault_are_there(number: str, tests: str) -> None:
    named = re.findall(r"`([^`]+)::([^`]+)`", tests)
    assert len(named) == len(tests.split(", "))
    for file, function in named:
        tree = ast.parse((ROOT / file).read_text())
        assert function in {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}
