"""tools/validate_diagnosis.py: its page is made of rows, and is read back into them where some are not tried anew."""

from __future__ import annotations

from oracles.tools_by_path import tool

TOOL = tool("validate_diagnosis")


def test_the_page_is_what_its_rows_make() -> None:
    text = TOOL.PAGE.read_text()
    assert TOOL.page(TOOL.rows_of(text)) == text


def test_kinds_of_cases_that_are_not_tried_anew_stay_as_they_were() -> None:
    earlier = TOOL.rows_of(TOOL.PAGE.read_text())
    new = {"kind": "stock", "right": False, "case": "some model", "found": "a | b"}
    rows = TOOL.rows_of(TOOL.page(TOOL.beside([new], earlier)))
    assert [row for row in rows if row["kind"] == "stock"] == [new]
    assert [row for row in rows if row["kind"] != "stock"] == [
        row for row in earlier if row["kind"] != "stock"
    ]
