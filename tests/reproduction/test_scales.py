"""Settings by scale, a trial's settings from a study's, and runs in groups."""

from __future__ import annotations

import doctest
import sys
from dataclasses import dataclass

import pytest

from skiplab.reproduction.scales import chunks, scales, subset


@dataclass(frozen=True)
class Wide:
    """A study's settings."""

    runs: int = 100
    width: int = 128
    data: tuple[str, ...] = ("cifar10",)


@dataclass(frozen=True)
class Small:
    """A trial's settings."""

    seed: int
    width: int = 1


def test_scales_change_what_they_say_and_nothing_else() -> None:
    found = scales(Wide, quick={"runs": 5}, smoke={"runs": 1, "width": 4}, data=("digits",))
    assert list(found) == ["smoke", "quick", "paper"]
    assert found["paper"] == Wide(data=("digits",))
    assert found["quick"] == Wide(runs=5, data=("digits",))
    assert found["smoke"] == Wide(runs=1, width=4, data=("digits",))


def test_a_scale_may_change_what_the_paper_has() -> None:
    assert scales(Wide, quick={}, smoke={"data": ("digits",)}, data=("svhn",))["smoke"].data == ("digits",)


def test_a_trial_takes_the_fields_that_both_have() -> None:
    assert subset(Small, Wide(width=7), seed=3) == Small(3, 7)
    assert subset(Small, Wide(), seed=3, width=2) == Small(3, 2)
    with pytest.raises(TypeError, match="seed"):
        subset(Small, Wide())


def test_chunks_keep_order_and_lose_nothing() -> None:
    assert chunks(range(7), 3) == [(0, 1, 2), (3, 4, 5), (6,)]
    assert chunks([], 3) == []


def test_examples_are_true() -> None:
    assert doctest.testmod(sys.modules[scales.__module__]).failed == 0
