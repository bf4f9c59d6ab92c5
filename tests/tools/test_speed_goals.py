"""tools/pages/speed_goals: goals are judged by published runs; the time of those that are missed is taken apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pages import speed_goals

from skiplab.benchmarks import Ceiling, Timing, training
from skiplab.benchmarks.profile import Kernel, Profile
from skiplab.benchmarks.record import Record

MS = 1e-3


def row(
    benchmark: str, what: str, precision: str, per: float, ratio: float = 1.0, start: float = 0.0
) -> Timing:
    note = f"{200 if 'many' in benchmark else 50} networks, one epoch"
    return Timing(benchmark, what, 1.0, ratio, note, precision, start, "network-epoch", per)


def record(*rows: Timing, profiles: tuple[Profile, ...] = ()) -> Record:
    return Record({"seconds": 400.0}, (Ceiling("bfloat16", 8e14, 4e12),), rows, (), profiles)


TRAINING = (
    row("training", "skiplab, batched", "tf32", 6 * MS, 1.0, 18.0),
    row("training", "skiplab, batched, in parts", "tf32", 3 * MS, 0.5, 3.5),
    row("training", "skiplab, batched, bfloat16", "bfloat16", 2.5 * MS, 1.0, 1.0),
    row("training", "JAX", "tf32", 9 * MS, 1.5),
    row("training", "JAX, bfloat16", "bfloat16", 4 * MS, 1.6),
)
MANY = row("training, many", "skiplab, batched, bfloat16", "bfloat16", 2 * MS)


def test_a_goal_is_reached_from_its_own_side() -> None:
    assert [speed_goals.Goal("x", 2.0, reached, "s").met for reached in (1.9, 2.0, 2.1)] == [
        True,
        True,
        False,
    ]
    assert [speed_goals.Goal("x", 2.0, reached, "times", least=True).met for reached in (1.9, 2.0)] == [
        False,
        True,
    ]
    assert speed_goals.Goal("a run", 300.0, 451.7, "s").row == "| a run | ≤ 300 s | 452 s | ✗ |"


def test_every_goal_of_which_something_is_published_has_a_row() -> None:
    found = {goal.work: goal for goal in speed_goals.goals([record(*TRAINING)], 250.0)}
    of = "50 networks of 30 × 128 units"
    reached = {work.replace(of, "…"): (goal.reached, goal.met) for work, goal in found.items()}
    assert reached == {
        "training …, bfloat16": (pytest.approx(2.5), False),
        "training …, in parts": (pytest.approx(3.0), True),
        "before their first step, bfloat16": (1.0, True),
        "before their first step, in parts": (3.5, False),
        "their epochs, bfloat16, against JAX, bfloat16": (pytest.approx(1.6), False),
        "their epochs, in parts, against JAX": (pytest.approx(3.0), True),
        "`orhan2017/figure-7` at the paper's scale, all its trials": (250.0, True),
        "all benchmarks on this page": (400.0, False),
    }
    assert list(speed_goals.goals([], None)) == []


def test_a_step_is_held_against_the_bytes_of_its_kernels() -> None:
    size = training.GPU_SIZE
    parameters = sum(each.numel() for each in size.network(0).parameters())
    assert speed_goals.least_bytes()["adam"] == 30 * 50 * parameters
    # Layers' inputs and derivatives in two bytes, written by the passes; masks are a bit per unit.
    units = 50 * 500 * 30 * 128
    assert speed_goals.least_bytes()["forward"] == 2 * 50 * parameters + 2 * units + units / 8
    bounds = {name: bytes_each / 4e12 for name, bytes_each in speed_goals.least_bytes().items()}
    kernels = tuple(Kernel(name, 2 * bound, 1.0) for name, bound in bounds.items())
    profile = Profile(
        "one training step of 50 residual networks of 30 layers", sum(bounds.values()) * 2, kernels
    )
    found = record(*TRAINING, profiles=(profile,))
    text = speed_goals.step_bound(found, profile)
    assert "50% of the step. Farthest from it is `adam`, by" in text
    assert f"`adam` {1e3 * bounds['adam']:.3g} ms (took {2e3 * bounds['adam']:.3g} ms)" in text
    assert "A step of the epochs above takes 1.25 ms" in text  # 50 networks · 2.5 ms / 100 steps
    assert "as JAX, bfloat16, it would have to take 0.8 ms (1.6 ms per network-epoch)" in text
    assert speed_goals.step_bound(found, Profile("one training step of 10 ResNets", 1.0, kernels)) == ""
    assert speed_goals.step_bound(found, Profile(profile.what, 1.0, kernels[:2])) == ""


class Published:
    """Two runs: figure 7's trials end at 12:10, 12:12 and 12:20, the other study's last one at 12:20 too."""

    def __init__(self) -> None:
        def trial(
            networks: int, seconds: float, minute: str, device: str = "NVIDIA H200", **more: Any
        ) -> Any:
            settings = {"seeds": list(range(networks)), "training": {"mixed": True} | more}
            return {
                "settings": settings,
                "seconds": seconds,
                "finished": f"2026-01-02T12:{minute}+00:00",
                "device": device,
            }

        self.trials = {
            "a": trial(600, 120.0, "10:00"),
            "b": trial(50, 121.0, "12:00", epochs=10),  # began a second before the one before ended
            "c": trial(50, 60.0, "20:00"),
            "cpu": trial(50, 60.0, "20:00", "x86_64 CPU"),
            "other": trial(10, 30.0, "20:10"),
        }

    def runs(self) -> list[Any]:
        named = {"orhan2017/figure-7": ("a", "b", "c", "cpu"), "orhan2017/figure-9": ("b", "other")}
        return [
            SimpleNamespace(study=study, trials=[{"key": key} for key in keys])
            for study, keys in named.items()
        ]

    def record(self, key: str) -> Any:
        return self.trials[key]


def test_figure_7s_seconds_are_told_by_networks_per_trial_and_apart_where_a_gpu_was_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(speed_goals, "published", Published)
    trials = speed_goals.figure_trials()
    assert [(each.networks, each.epochs, each.beside) for each in trials] == [
        (600, 60_000, False),
        (50, 500, False),
        (50, 5_000, True),
    ]
    text = speed_goals.figure_account(trials, [record(MANY)])
    assert "How long each takes has yet to be timed." in text
    timed = Profile("one trial of 50 residual networks of 30 layers, one epoch", 1.0, ())
    assert "How long each takes stands below." in speed_goals.figure_account(
        trials, [record(MANY, profiles=(timed,))]
    )
    assert "for 301 s in all: 65,500 network-epochs" in text
    assert "(200 networks) take 2.00 ms per network: 131 s for all of these, 293 to 333 s for those" in text
    assert "no other published one ran took 3.98 ms" in text  # 241 s for 60,500
    assert text.splitlines()[-3:] == [
        "| 600 | 1 | 120 | 2.00 |",
        "| 50 | 1 | 121 | 242.00 |",
        "| 50, beside another published trial | 1 | 60 | 12.00 |",
    ]


def test_what_is_slow_to_start_is_told_with_how_soon_the_next_one_does() -> None:
    first = row("training", "skiplab, batched, in parts", "tf32", 3 * MS, start=3.5)
    again = row("training, many", "skiplab, batched, in parts", "tf32", 3 * MS, start=0.03)
    assert (
        "in parts, 3.5 s; the 200 networks timed next in the same process waited 30 ms"
        in speed_goals.start_account([record(first, again)])
    )
    assert speed_goals.start_account([record(again)]) == ""
