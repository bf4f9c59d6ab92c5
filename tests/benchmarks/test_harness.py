"""Benchmarks: turns are taken, ratios are to ours, and a case that cannot run is named."""

from __future__ import annotations

from dataclasses import replace

import pytest

from skiplab.benchmarks import BENCHMARKS, convolutions, harness, measure
from skiplab.benchmarks.harness import Case, interleave
from skiplab.benchmarks.hessian import HessianSize
from skiplab.checks import Refused


class Clock:
    """A clock that only the cases move."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Time stands still but for what cases take."""
    fake = Clock()
    monkeypatch.setattr(harness, "time", fake)
    return fake


def test_cases_take_turns_after_one_warm_up_each(clock: Clock) -> None:
    order: list[str] = []
    durations = {"a": iter([9.0, 1.0, 2.0, 4.0]), "b": iter([9.0, 3.0, 4.0, 40.0])}

    def case(name: str) -> Case:
        def work() -> None:
            order.append(name)
            clock.now += next(durations[name])

        return Case(name, work, f"note of {name}")

    ours, other, missing = interleave("x", [case("a"), case("b"), Case("c", None, "not installed")], 3)
    assert order == ["a", "b"] * 4
    # Medians of (1, 2, 4) and (3, 4, 40); the ratio is the median of 3, 2 and 10, not 4 / 2.
    assert (ours.seconds, ours.ratio) == (2.0, 1.0)
    assert (other.seconds, other.ratio) == (4.0, 3.0)
    assert (missing.seconds, missing.ratio, missing.note) == (None, None, "not installed")
    assert {row.benchmark for row in (ours, other, missing)} == {"x"}


def test_wrong_names_and_rounds_are_refused() -> None:
    with pytest.raises(Refused, match=r"benchmark 'trainin' is unknown; .*Did you mean training"):
        measure("trainin")
    with pytest.raises(Refused, match="rounds is 0, but must be at least 1"):
        measure("landscape", rounds=0)


def test_both_landscape_programs_find_the_same_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A speed is worth nothing unless the same thing was computed."""
    import numpy as np

    monkeypatch.setattr("skiplab.benchmarks.landscape.DEPTH", 1)
    ours, plain = BENCHMARKS["landscape"]("cpu")
    assert ours.run is not None
    assert plain.run is not None
    np.testing.assert_allclose(np.sort(np.asarray(ours.run())), np.sort(np.asarray(plain.run())), rtol=1e-12)


def test_training_measures_ours_first_against_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    size = {"networks": 2, "width": 4, "inputs": 5, "images": 20, "batch": 10}
    monkeypatch.setattr("skiplab.benchmarks.training.CPU_SIZE", size)
    rows = measure("training", rounds=1)
    assert [row.what for row in rows] == ["skiplab, batched", "skiplab, loop", "plain PyTorch, one by one"]
    assert rows[0].ratio == 1.0
    assert all(row.seconds is not None and row.seconds > 0 for row in rows)
    assert rows[0].note == "2 networks, one epoch of 20 samples"


def test_convolutions_measure_the_way_that_is_chosen_first(monkeypatch: pytest.MonkeyPatch) -> None:
    small = convolutions.ConvolutionSize(networks=2, blocks=1, batch=4, steps=1)
    monkeypatch.setattr(convolutions, "CPU_SIZE", small)
    rows = measure("convolutions", rounds=1)
    assert [row.what for row in rows] == [
        "skiplab, loop",
        "skiplab, wide",
        "skiplab, wide, bfloat16",
        "torch.vmap",
        "plain PyTorch, one by one",
    ]
    assert all(row.seconds is not None and row.seconds > 0 for row in rows)
    assert rows[0].note == "2 networks of 6 layers, 1 step(s) of 4 images"


def test_hessians_are_measured_at_all_sizes_and_absent_peers_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    small = HessianSize(inputs=5, width=4, depth=2, samples=20, probes=2, steps=3, first_layer=False)
    monkeypatch.setattr("skiplab.benchmarks.hessian.SMALL", small)
    monkeypatch.setattr("skiplab.benchmarks.hessian.LARGE", replace(small, first_layer=True, probes=1))
    monkeypatch.setattr("skiplab.benchmarks.hessian.LOADER_BATCH", 8)
    for module in ("pyhessian", "curvlinops", "hessian_eigenthings"):
        monkeypatch.setitem(sys.modules, module, None)
    rows = measure("hessian", rounds=3)
    assert [(row.benchmark, row.what) for row in rows] == [
        ("hessian", "skiplab"),
        ("hessian", "PyHessian"),
        ("hessian", "curvlinops"),
        ("hessian", "hessian-eigenthings"),
        ("hessian, large", "skiplab"),
        ("hessian, large", "PyHessian"),
        ("hessian, loader", "skiplab"),
        ("hessian, loader", "PyHessian"),
    ]
    # 4·4 + 4 hidden and 10·4 + 10 output parameters; with the first layer 5·4 + 4 more.
    assert rows[0].note == "2 probes × 3 steps, 70 parameters, 20 samples"
    assert rows[4].note == "1 probes × 3 steps, 94 parameters, 20 samples"
    assert rows[6].note == "1 probes × 3 steps, 94 parameters, 20 samples in batches of 8"
    absent = (*rows[1:4], rows[5], rows[7])
    assert all(row.note.startswith("skipped: ") and row.seconds is None for row in absent)
