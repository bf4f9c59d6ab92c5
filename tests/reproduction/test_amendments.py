"""Amendments are taken apart as they are written, and those that changed a verdict come first."""

from __future__ import annotations

import pytest

from skiplab.checks import Refused
from skiplab.reproduction.amendments import Amendment, Change, in_order


def test_an_amendment_has_a_date_words_and_the_verdicts_that_it_changed() -> None:
    line = "2026-01-02: Wider. Verdicts: first contradicted → undecided, a-2 (one row) undecided → holds."
    found = Amendment.of(line)
    assert (found.date, found.text, found.line) == ("2026-01-02", "Wider.", line)
    assert found.changes == (
        Change("first", "", "contradicted", "undecided"),
        Change("a-2", "one row", "undecided", "holds"),
    )
    assert Amendment.of("2026-01-02: Wider: no verdict changes.").changes == ()


def test_what_changed_a_verdict_comes_first_and_the_newest_before_the_oldest() -> None:
    turn = " Verdicts: it holds → undecided."
    lines = [
        "2026-01-01: A." + turn,
        "2026-01-04: B.",
        "2026-01-02: C.",
        "2026-01-03: D." + turn,
        "2026-01-02: E.",
    ]
    assert [each.text for each in in_order(lines)] == ["D.", "A.", "B.", "C.", "E."]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Yesterday: wider.", "is no amendment; write YYYY-MM-DD"),
        (
            "2026-01-02: Wider. Verdicts: it held → holds.",
            "'it held → holds' is no change of a verdict; write",
        ),
        (
            "2026-01-02: Wider. Verdicts: it holds → holds.",
            "'it holds → holds' is no change of a verdict; write",
        ),
        ("2026-01-02: Wider. Verdicts: it holds → undecided", "is no amendment; write"),
        ("2026-01-02: Wider. Verdicts: .", "is no change of a verdict|is no amendment"),
    ],
)
def test_what_cannot_be_read_is_refused(line: str, words: str) -> None:
    with pytest.raises(Refused, match=words):
        Amendment.of(line)
