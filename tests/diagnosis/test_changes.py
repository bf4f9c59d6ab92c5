"""Two reports beside each other: which findings went, came, got better or worse, and how numbers moved."""

from __future__ import annotations

import dataclasses

import pytest

from oracles.made_up_reports import DEAD, SHALLOW, VANISHING, report
from skiplab.checks import Refused
from skiplab.diagnosis.changes import Changes
from skiplab.diagnosis.finding import Finding

BEFORE = report()


def kinds(*after: Finding, before: tuple[Finding, ...] = BEFORE.findings) -> dict[str, str]:
    """The kind of change by id, with the same measurements before and after."""
    changes = dataclasses.replace(BEFORE, findings=before).compare(
        dataclasses.replace(BEFORE, findings=after)
    )
    return {each.either.id: each.kind for each in changes.findings}


def test_findings_go_come_and_stay() -> None:
    other = dataclasses.replace(DEAD, id="dead-layer")
    assert kinds(VANISHING, other) == {
        "dead-layer": "new",
        "vanishing-gradients": "the same",
        "dead-units": "gone",
        "shallow-paths": "a fact",
    }


def test_facts_are_neither_better_nor_worse_and_come_last() -> None:
    moved = dataclasses.replace(SHALLOW, where=("c",), statistic=5.0, weight=4.0)
    assert kinds(moved, before=(SHALLOW,)) == {"shallow-paths": "a fact"}  # one, though at another place
    assert list(kinds(moved, DEAD, before=(DEAD,))) == ["dead-units", "shallow-paths"]
    assert kinds(dataclasses.replace(SHALLOW, severity="warning"), before=(SHALLOW,)) == {
        "shallow-paths": "worse"
    }


def test_the_same_trouble_at_another_place_is_another_finding() -> None:
    moved = dataclasses.replace(DEAD, where=("c",))
    changes = dataclasses.replace(BEFORE, findings=(DEAD,)).compare(
        dataclasses.replace(BEFORE, findings=(moved,))
    )
    assert [(each.kind, each.either.where) for each in changes.findings] == [
        ("new", ("c",)),
        ("gone", ("b",)),
    ]


def test_severity_decides_what_is_better() -> None:
    milder, harsher = (
        dataclasses.replace(VANISHING, severity="info"),
        dataclasses.replace(DEAD, severity="severe"),
    )
    assert kinds(milder, harsher, SHALLOW) == {
        "dead-units": "worse",
        "vanishing-gradients": "better",
        "shallow-paths": "a fact",
    }


def test_within_a_severity_the_weight_decides_where_intervals_are_apart() -> None:
    lighter = dataclasses.replace(VANISHING, weight=2.0, statistic=0.002, low=0.0011, high=0.004)
    assert kinds(lighter, before=(VANISHING,)) == {"vanishing-gradients": "the same"}  # 0.0011 < 0.0012
    assert kinds(dataclasses.replace(lighter, low=0.0013), before=(VANISHING,)) == {
        "vanishing-gradients": "better"
    }
    heavier = dataclasses.replace(DEAD, statistic=1.0, weight=1.0)  # exact numbers, without intervals
    assert kinds(heavier, before=(DEAD,)) == {"dead-units": "worse"}


def test_what_was_not_examined_again_is_not_called_gone() -> None:
    less = dataclasses.replace(BEFORE, findings=(), measured=BEFORE.measured[:1])  # without singularities
    found = {each.either.id: each.kind for each in BEFORE.compare(less).findings}
    assert found == {
        "dead-units": "not examined again",
        "vanishing-gradients": "gone",
        "shallow-paths": "a fact",
    }


def test_the_middle_layer_stands_for_a_quantity() -> None:
    after = report(seed=3)
    moved = BEFORE.compare(after).numbers
    assert [each.what for each in moved] == ["gradient_norms: norm", "singularities: dead units"]
    for side, of in ((moved[0].before, BEFORE), (moved[0].after, after)):
        by_value = of.result("gradient_norms").frame().sort_values("norm")
        middle = by_value.iloc[(len(by_value) - 1) // 2]
        assert side == pytest.approx(tuple(middle[["norm", "norm, low", "norm, high"]]))
    low, high = moved[0].before[1:], moved[0].after[1:]
    assert moved[0].apart == (low[1] < high[0] or high[1] < low[0])


def test_a_report_compared_with_itself_has_nothing_apart() -> None:
    changes = BEFORE.compare(BEFORE)
    assert [each.kind for each in changes.findings] == ["the same", "the same", "a fact"]
    assert not any(each.apart for each in changes.numbers)
    assert changes.title == "Tower: 2 the same"


def test_the_text_is_short_and_says_what_changed() -> None:
    many = tuple(dataclasses.replace(DEAD, where=(f"layer{n}" * 20,)) for n in range(30))
    text = repr(Changes(BEFORE, dataclasses.replace(BEFORE, findings=many, name="Tower, treated")))
    assert len(text.splitlines()) <= 25
    assert max(map(len, text.splitlines())) <= 110
    assert text.startswith("Tower → Tower, treated: 30 new, 2 gone\n  ✗ new: dead-units [layer0")
    assert "and 21 more: to_frame() has all" in text
    assert "gradient_norms: norm: 0.00849 (" in text
    same = repr(BEFORE.compare(BEFORE))
    assert "= the same: vanishing-gradients [a]: ✗ severe, 8.00 × 10⁻⁴ (0.00050 to 0.00120) →" in same
    nothing = dataclasses.replace(BEFORE, findings=(), measured=())
    assert repr(nothing.compare(nothing)) == "Tower: no troubles in either"


def test_the_table_has_a_row_per_finding_of_either() -> None:
    table = BEFORE.compare(dataclasses.replace(BEFORE, findings=(VANISHING,))).to_frame()
    assert list(table["change"]) == ["the same", "gone", "a fact"]
    assert list(table["severity, before"]) == ["severe", "warning", "info"]
    assert list(table["severity, after"]) == ["severe", "", ""]
    empty = dataclasses.replace(BEFORE, findings=())
    assert list(empty.compare(empty).to_frame().columns) == list(table.columns)


def test_a_notebook_shows_names_as_they_are() -> None:
    bad = dataclasses.replace(DEAD, where=("<b>x</b>",))
    shown = BEFORE.compare(dataclasses.replace(BEFORE, findings=(bad,)))._repr_html_()
    assert "&lt;b&gt;x&lt;/b&gt;" in shown
    assert "<b>x" not in shown
    assert shown.count("<table>") == 2


def test_an_unknown_kind_of_change_is_refused() -> None:
    with pytest.raises(Refused, match=r"kind of change 'wors' is unknown.*Did you mean worse"):
        BEFORE.compare(BEFORE).of("wors")
