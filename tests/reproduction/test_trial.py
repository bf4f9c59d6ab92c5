"""A trial's key: the same for the same work, whoever asks for it; another for any change."""

from __future__ import annotations

import dataclasses
import pickle
from dataclasses import dataclass, field

import counted_studies
import pytest
from counted_studies import COUNT, SHARING, Draw, DrawFrom, draw, draw_from

from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Trial, changed_settings, largest, plain, versions_at_hand


def no_data(name: str) -> str:
    raise AssertionError(f"{name} was looked up")


def test_key_does_not_depend_on_study_or_label() -> None:
    first = {call.key(no_data) for call in COUNT.stages[0](Results(COUNT.settings["quick"]))}
    second = {call.key(no_data) for call in SHARING.stages[0](Results(SHARING.settings["quick"]))}
    assert first == second
    assert len(first) == 6
    assert draw.of(Draw(1), "a").key(no_data) == draw.of(Draw(1), "b").key(no_data)
    assert draw.of(Draw(1), "a") == draw.of(Draw(1), "b")


def test_key_is_the_one_that_stored_results_bear() -> None:
    # Written down when trials got their names: a change here makes all stored results worthless.
    assert draw.of(Draw(3, shift=0.5)).key(no_data) == "a2e406456129f447ff4f6341c9689dad"


def test_a_field_at_its_default_is_left_out_of_the_key() -> None:
    @dataclass(frozen=True)
    class Older:
        seed: int
        shift: float = 1.0

    assert draw.of(Older(4)).key(no_data) == draw.of(Draw(4)).key(no_data)
    assert draw.of(Older(4, 2.0)).key(no_data) == draw.of(Draw(4, 2.0)).key(no_data)
    assert draw.of(Draw(4, added_later=1)).key(no_data) != draw.of(Draw(4)).key(no_data)


@pytest.mark.parametrize("other", [Draw(2), Draw(1, shift=1.5), Draw(1, added_later=7)])
def test_key_changes_with_any_setting(other: Draw) -> None:
    assert draw.of(other).key(no_data) != draw.of(Draw(1)).key(no_data)


def test_key_changes_with_function_version_and_data() -> None:
    call = draw.of(Draw(1))
    assert draw_from.of(Draw(1)).key(no_data) != call.key(no_data)
    newer = Trial(draw.function, draw.name, 2)
    Trial(draw.function, draw.name, 1)  # so that the list of versions is as it was
    assert newer.name == draw.name
    assert newer.of(Draw(1)).key(no_data) != call.key(no_data)
    on_data = draw_from.of(DrawFrom(1, data="digits"))
    assert on_data.key(lambda name: "one") != on_data.key(lambda name: "two")


def test_versions_at_hand_name_every_declared_trial() -> None:
    assert versions_at_hand()["counted/draw"] == 1
    versions_at_hand()["counted/draw"] = 9
    assert versions_at_hand()["counted/draw"] == 1


def test_a_trial_travels_by_name() -> None:
    assert pickle.loads(pickle.dumps(draw)) is counted_studies.draw
    assert draw.name == "counted/draw"


def test_settings_become_plain_data() -> None:
    @dataclass(frozen=True)
    class Inner:
        depth: int = 3
        width: int = 5

    @dataclass(frozen=True)
    class Outer:
        names: tuple[str, ...]
        inner: Inner = Inner()
        grid: dict[str, tuple[int, ...]] = field(default_factory=dict)

    settings = Outer(("a",), Inner(depth=4), {"x": (1, 2)})
    assert changed_settings(settings) == {"names": ["a"], "inner": {"depth": 4}, "grid": {"x": [1, 2]}}
    assert plain(dataclasses.asdict(settings)) == {
        "names": ["a"],
        "inner": {"depth": 4, "width": 5},
        "grid": {"x": [1, 2]},
    }


def test_the_largest_of_some_calls_is_found_by_what_its_trial_says() -> None:
    sized = Trial(
        lambda settings, bench: None, "toy2000/sized", 1, lambda settings, device: 10 * settings.seed
    )  # type: ignore[arg-type,return-value]
    calls = [sized.of(Draw(seed), f"seed {seed}") for seed in (2, 5, 3)]
    assert largest([draw.of(Draw(9)), *calls], "cpu") == (50, calls[1])
    assert largest([draw.of(Draw(9))], "cpu") is None
    plain_call = draw.of(Draw(5))
    assert plain_call.trial.memory is None
