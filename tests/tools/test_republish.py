"""tools/republish.py: what a row says in numbers and what it says in words are told apart."""

from __future__ import annotations

import dataclasses

from oracles.example_row import row
from oracles.tools_by_path import tool
from skiplab.reproduction.verdict import Verdict

TOOL = tool("republish")
ROW = row(statistic=2.0, low=1.0)


def with_(**changes: object) -> list[Verdict]:
    return [dataclasses.replace(ROW, **changes)]  # type: ignore[arg-type]


def test_changed_words_are_told_and_are_no_changed_numbers() -> None:
    new = with_(detail="of 8 networks", text="It rises fast.")
    assert not list(TOOL.changes([ROW], new))
    assert list(TOOL.new_words([ROW], new)) == [
        "rises, 20 layers: text 'It rises.' → 'It rises fast.'",
        "rises, 20 layers: detail '' → 'of 8 networks'",
    ]
    assert not list(TOOL.new_words([ROW], with_(statistic=2.5)))
    assert list(TOOL.changes([ROW], with_(statistic=2.5))) == ["rises, 20 layers: statistic 2.0 → 2.5"]


def test_the_last_digits_of_a_number_are_the_machine_s() -> None:
    assert not list(TOOL.changes([ROW], with_(statistic=2.0 * (1 + 1e-12), p=0.01 + 1e-14)))
    assert len(list(TOOL.changes([ROW], with_(statistic=2.0 * (1 + 1e-8))))) == 1
    assert list(TOOL.changes([ROW], with_(low=None))) == ["rises, 20 layers: low 1.0 → None"]


def test_why_a_condition_has_no_numbers_counts_as_what_it_says() -> None:
    assert list(TOOL.changes([ROW], with_(missing="not run"))) == ["rises, 20 layers: missing  → not run"]


def test_a_sentence_that_several_rows_share_is_told_once() -> None:
    old = [ROW, *with_(condition="44 layers")]
    new = [*with_(text="It falls."), *with_(condition="44 layers", text="It falls.")]
    assert len(list(TOOL.new_words(old, new))) == 1


def test_rows_that_are_new_or_gone_have_no_changed_words() -> None:
    assert not list(TOOL.new_words([ROW], []))
    assert next(iter(TOOL.changes([], [ROW]))) == "rises, 20 layers: new"
