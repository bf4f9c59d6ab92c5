"""What commands print with --json has the shape that docs/json.md shows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from oracles.json_shapes import mismatches, shapes
from skiplab.cli import app
from skiplab.reproduction.store import PUBLISHED
from skiplab.studies import CATALOGUE

SHAPES = shapes()


def printed(*arguments: str) -> Any:
    """The JSON that a command prints, without NaN or infinity."""
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def differences(name: str, value: Any) -> list[str]:
    return mismatches(SHAPES[name], value, SHAPES)


def test_list_and_check_of_all_that_is_published(tmp_path: Path) -> None:
    assert differences("list", printed("list")) == []
    found = printed("check", "--store", str(tmp_path))
    assert len(found["claims"]) > 300
    assert differences("check", found) == []


@pytest.mark.parametrize("paper", [paper.id for paper in CATALOGUE.papers])
def test_show_of_a_study_of_each_paper(paper: str, tmp_path: Path) -> None:
    study = next(study.id for study in CATALOGUE if study.paper == paper)
    found = printed("show", study, "--store", str(tmp_path))
    assert found["run"] is not None
    assert differences("show", found) == []


def test_show_of_a_study_that_has_not_been_run(fresh_machine: None, tmp_path: Path) -> None:
    found = printed("show", "orhan2017/figure-4", "--store", str(tmp_path))
    assert found.pop("run") is None
    without = {name: shape for name, shape in SHAPES["show"].items() if name != "run"}
    assert mismatches(without, found, SHAPES) == []


def test_bench_as_it_was_published() -> None:
    content = json.loads((PUBLISHED / "bench-h200.json").read_text())
    del content["sha256"]  # the seal of a file, which what is printed does not have
    assert differences("bench", content) == []


def test_compare_of_two_networks_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "nets.py"
    made = "nn.Sequential(nn.Flatten(), nn.Linear(64, {}), nn.Tanh(), nn.Linear({}, 10))"
    lines = [f"def {name}():\n    return {made.format(width, width)}" for name, width in (("a", 3), ("b", 5))]
    file.write_text("\n".join(["from torch import nn", *lines]))
    words = ["--seeds=2", "--steps=2", "--rate=0.01", "--measure=gradient_norms,activation_patterns"]
    found = printed("compare", f"{file}:a", f"{file}:b", *words)
    assert found["unmeasured"]
    assert differences("compare", found) == []


def test_what_is_not_of_a_shape_is_told() -> None:
    shape = {"name": "string", "size": "whole number or null", "kind": "a | b", "rows": [{"*": "number"}]}
    good = {"name": "x", "size": None, "kind": "a", "rows": [{"one": 1, "two": 2.5}]}
    assert mismatches(shape, good, {}) == []
    for wrong, words in (
        ({"name": 3}, "$.name is 3, not string"),
        ({"size": 1.5}, "$.size is 1.5, not whole number or null"),
        ({"size": True}, "$.size is True, not whole number or null"),
        ({"kind": "c"}, "$.kind is 'c', not a | b"),
        ({"rows": [{"one": "1"}]}, "$.rows[0].one is '1', not number"),
        ({"rows": {}}, "$.rows is no list"),
        ({"more": 1}, "$ has more"),
    ):
        assert mismatches(shape, good | wrong, {}) == [words]
    assert mismatches(shape, {name: good[name] for name in ("name", "size", "kind")}, {}) == ["$ lacks rows"]
    assert mismatches(shape, [], {}) == ["$ is no object"]
