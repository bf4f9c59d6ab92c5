"""tools/validate_diagnosis.py: its page is made of rows, and is read back into them where some are not tried anew."""

from __future__ import annotations

import math
from typing import Any

import pytest

from oracles.tools_by_path import tool
from skiplab.diagnosis.thresholds import Limits

TOOL = tool("validate_diagnosis")


def test_the_page_is_what_its_rows_make() -> None:
    text = TOOL.PAGE.read_text()
    assert TOOL.page(TOOL.rows_of(text)) == text


def changed(value: float, kind: str, normalised: bool = False) -> dict[str, Any]:
    return {"kind": kind, "normalised": normalised, "graded": [{"influence": value}]}


def test_a_limit_is_measured_by_what_it_misses_and_blames() -> None:
    failing, training = (20.0, 60.0, 90.0, math.nan), (5.0, 30.0, 40.0, 500.0)
    rows = [changed(value, "spoilt") for value in failing]
    rows += [changed(value, "harmless", normalised=value > 100) for value in training]
    found = TOOL._of_changed(Limits("influence", 80.0, math.inf, ""), rows)
    assert (found["failing"], found["missed"], found["training"], found["blamed"]) == (4, 3, 4, 1)
    assert found["least mistakes"] == [40.0, 60.0]  # 2 of 4 missed and 1 of 4 blamed
    assert found["last training"] == 40.0
    mirrored = [changed(1 / row["graded"][0]["influence"], row["kind"], row["normalised"]) for row in rows]
    found = TOOL._of_changed(Limits("influence", 1 / 80, 0.0, "", falls=True), mirrored)
    assert (found["missed"], found["blamed"]) == (3, 1)
    assert found["least mistakes"] == pytest.approx([1 / 60, 1 / 40])
    assert found["last training"] == 1 / 40


def test_the_page_counts_changed_data_by_rule_and_rescaled_ones_apart() -> None:
    rows = TOOL.rows_of(TOOL.PAGE.read_text())
    cells = [line.strip("| ").split(" | ") for line in TOOL.by_change(rows)[3:]]
    assert [cell[0] for cell in cells] == list(TOOL.LIMIT_OF)
    for column, kind in ((1, "spoilt"), (2, "harmless")):
        own = [row for row in rows if row["kind"] == kind]
        counts = [[int(number) for number in cell[column].split(" of ")] for cell in cells]
        assert sum(whole for _, whole in counts) == len(own)
        assert sum(part for part, _ in counts) == sum(row["right"] == (kind == "spoilt") for row in own)
    assert not any(row["case"].startswith("scaled") for row in rows if row["kind"] != "rescaled")


def test_kinds_of_cases_that_are_not_tried_anew_stay_as_they_were() -> None:
    earlier = TOOL.rows_of(TOOL.PAGE.read_text())
    new = {"kind": "stock", "right": False, "case": "some model", "found": "a | b"}
    rows = TOOL.rows_of(TOOL.page(TOOL.beside([new], earlier)))
    assert [row for row in rows if row["kind"] == "stock"] == [new]
    assert [row for row in rows if row["kind"] != "stock"] == [
        row for row in earlier if row["kind"] != "stock"
    ]
