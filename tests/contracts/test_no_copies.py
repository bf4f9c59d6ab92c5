"""No run of more than eight equal lines stands twice in src; imports and the heads of functions do not count."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import skiplab

ROOT = Path(skiplab.__file__).parent
MOST = 8


def own_lines(source: str) -> list[tuple[int, str]]:
    """The lines of a module that say what it does, each with its number."""
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            left_out |= set(range(node.lineno, node.body[0].lineno))
    every = enumerate(map(str.strip, source.splitlines()), 1)
    return [(number, line) for number, line in every if line and number not in left_out]


def copies(modules: dict[str, str], most: int = MOST) -> list[str]:
    """Where runs of more than ``most`` equal lines begin, two places and more per run."""
    places: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, source in modules.items():
        lines = own_lines(source)
        for start in range(len(lines) - most):
            run = tuple(line for _, line in lines[start : start + most + 1])
            places[run].append(f"{name}:{lines[start][0]}")
    return [" = ".join(found) for found in places.values() if len(found) > 1]


def test_a_copy_is_found_and_imports_are_none() -> None:
    body = "\n".join(f"x{number} = {number}" for number in range(9))
    assert copies({"a": f"import os\n{body}", "b": f"y = 1\n{body}"}) == ["a:2 = b:2"]
    assert not copies({"a": body, "b": body.replace("x4", "z")})
    names = "from os import (\n" + "\n".join(f"    name{number}," for number in range(9)) + "\n)"
    assert not copies({"a": names, "b": names})


def test_nothing_stands_twice() -> None:
    assert not copies({str(path.relative_to(ROOT)): path.read_text() for path in ROOT.rglob("*.py")})
