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
    listed,
    near,
    no_such,
    one_of,
    positive,
    require,
    seeded,
    whole_numbers,
)
from skiplab.randomness import torch_generator


def test_a_near_name_is_suggested_and_a_far_one_is_not() -> None:
    assert near("residaul", ["plain", "residual"]) == " Did you mean residual?"
    assert near("zzzz", ["plain", "residual"]) == ""


def test_a_name_that_is_there_twice_is_suggested_once() -> None:
    assert near("2.ll", ["2.l", "2.l", "7.head"]) == " Did you mean 2.l?"


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


def test_at_least_refuses_what_is_no_number() -> None:
    with pytest.raises(Refused, match=r"^epochs is '3', but must be a number of at least 1\.$"):
        at_least("epochs", "3", 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), 10**400, "1", None, [1]])
def test_positive_numbers_are_finite_and_come_back_as_floats(value: object) -> None:
    assert repr(positive("factor", 3, 10)) == "3.0"
    with pytest.raises(Refused, match=r"^factor is .*, but must be a positive number such as 10\.$"):
        positive("factor", value, 10)  # type: ignore[arg-type]


def test_whole_numbers_may_begin_elsewhere() -> None:
    whole_numbers(least=0, probes=0)
    with pytest.raises(Refused, match=r"^angles is 2, but must be a whole number of at least 3\.$"):
        whole_numbers(least=3, angles=2)


@pytest.mark.parametrize("names", ["head", b"head", 3, [1], [["head"]], {"head": 1}.values(), iter(["head"])])
def test_names_come_in_lists(names: object) -> None:
    for sound in (None, [], ["head"], ("head",), {"head"}, {"head": 1}.keys()):
        listed("layers", sound)
    with pytest.raises(Refused, match=r"^layers is .*, but must be a list of names"):
        listed("layers", names)


@pytest.mark.parametrize("seed", [0.5, "0", None, True, [0]])
def test_seeds_are_whole_numbers(seed: object) -> None:
    seeded(-1)
    with pytest.raises(Refused, match=r"^seed is .*, but must be a whole number such as 0\.$"):
        seeded(seed)


def test_a_name_that_a_network_lacks_comes_with_names_that_it_has() -> None:
    names = ["", "stem", "body.0", "body.1", "body.2", "body.3", "head"]
    assert str(no_such("layer", "haed", names)) == (
        "layer 'haed' does not exist in the network. Did you mean head?"
    )
    assert str(no_such("layer", "zzzz", names)) == (
        "layer 'zzzz' does not exist in the network. There are stem, body.0, body.1, body.2, body.3, …; "
        "name one of these."
    )
    assert (
        str(no_such("layer", "x", [""]))
        == "layer 'x' does not exist in the network. It has none; leave it out."
    )


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
