"""Refusals name the value and the remedy."""

from __future__ import annotations

import pytest

from skiplab.checks import (
    DataDamaged,
    DataMissing,
    Refused,
    SkiplabError,
    at_least,
    drawn_from,
    near,
    one_of,
    require,
    whole_numbers,
)
from skiplab.randomness import torch_generator


def test_a_near_name_is_suggested_and_a_far_one_is_not() -> None:
    assert near("residaul", ["plain", "residual"]) == " Did you mean residual?"
    assert near("zzzz", ["plain", "residual"]) == ""


def test_several_near_names_are_joined_best_first_and_at_most_three() -> None:
    assert near("net1", ["net2", "net12", "net3", "net4"]) == " Did you mean net12 or net4 or net3?"


def test_one_of_returns_a_known_name() -> None:
    assert one_of("backend", "loop", ("batched", "loop")) == "loop"


def test_one_of_refuses_an_unknown_name_with_the_choices_and_a_suggestion() -> None:
    sentence = r"^backend 'lop' is unknown; choose one of batched, loop\. Did you mean loop\?$"
    with pytest.raises(Refused, match=sentence):
        one_of("backend", "lop", iter(("batched", "loop")))


def test_at_least_takes_the_bound_itself() -> None:
    at_least("epochs", 3, 3)
    at_least("rate", 0.5, 0.25)


@pytest.mark.parametrize("value", [2, float("nan")])
def test_at_least_refuses_less_and_what_is_no_number(value: float) -> None:
    with pytest.raises(Refused, match=rf"^epochs is {value}, but must be at least 3\.$"):
        at_least("epochs", value, 3)


@pytest.mark.parametrize("value", [0, -1, 2.0, True, "3", None])
def test_whole_numbers_are_neither_truths_nor_fractions(value: object) -> None:
    whole_numbers(steps=1, probes=3)
    with pytest.raises(Refused, match=rf"^probes is {value!r}, but must be a whole number of at least 1\.$"):
        whole_numbers(steps=1, probes=value)  # type: ignore[arg-type]


def test_a_seed_is_no_generator() -> None:
    drawn_from(torch_generator(0))
    with pytest.raises(
        Refused, match=r"^generator is 0, but must be a torch\.Generator, such as .*\(seed\) returns"
    ):
        drawn_from(0)


def test_require_refuses_with_its_sentence() -> None:
    require(True, "never said")
    with pytest.raises(Refused, match=r"^the sky is green; look again\.$"):
        require(False, "the sky is green; look again.")


def test_one_except_clause_catches_all_that_a_user_can_mend() -> None:
    assert all(issubclass(kind, SkiplabError) for kind in (Refused, DataMissing, DataDamaged))
    assert issubclass(Refused, ValueError)
