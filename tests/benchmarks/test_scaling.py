"""Scaling: slopes of made-up times are found with their intervals, and so is the size from which a device is full."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from skiplab.benchmarks import scaling
from skiplab.benchmarks.scaling import AXES, COUNTED, CPU_SWEEP, GPU_SWEEP, Sweep, measure_scaling, summary
from skiplab.benchmarks.training import TrainingSize
from skiplab.checks import Refused

SIZES = (1, 2, 4, 8, 16, 32)


def test_a_device_that_fills_up_has_the_slope_of_its_work_from_there_on() -> None:
    # A fixed cost of 4 until 4 networks are in flight; then every network costs 1.
    rows = [[factor * max(4.0, size) for size in SIZES] for factor in (1.0, 1.1, 0.9)]
    found = summary("networks", SIZES, rows, [3.0 * size for size in SIZES])
    assert found.full_from == 4
    assert (found.slope, found.low, found.high) == pytest.approx((1.0, 1.0, 1.0))
    assert found.work_slope == pytest.approx(1.0)
    assert found.sentence == (
        "networks: the device is full from 4 networks on, and there time is a straight line, 1 s per network; on "
        "log-log axes it grows with slope 1.00 [1.00, 1.00] (its work: 1.00)."
    )


def test_a_device_that_does_not_fill_up_has_a_slope_through_all_sizes() -> None:
    rows = [[size**power for size in SIZES] for power in (0.4, 0.5, 0.6)]
    found = summary("width", SIZES, rows, [float(size**2) for size in SIZES])
    assert found.full_from is None
    assert found.slope == pytest.approx(0.5)
    # Student's 97.5 % point with two degrees of freedom is 4.3027; the standard error .1/√3.
    assert found.high - found.slope == pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-4)
    assert found.work_slope == pytest.approx(2.0)
    assert "not full at 32 units per layer, where further work is still done faster; over" in found.sentence


def test_what_does_not_grow_with_the_size_keeps_no_device_from_being_full() -> None:
    """The log-log slope is below 1 then, and the rate of all work rises up to the largest size."""
    rows = [[factor * (8e-3 + 5e-6 * size) for size in SIZES] for factor in (1.0, 1.0)]
    found = summary("samples", SIZES, rows, [float(size) for size in SIZES])
    assert found.full_from == 1
    assert found.slope < 0.1
    assert (
        "there time is a straight line, 5 µs per sample and a fixed 8 ms; on log-log axes" in found.sentence
    )


def test_work_that_is_no_straight_line_is_told_by_its_slope_alone() -> None:
    rows = [[float(size**2) for size in SIZES]] * 2
    found = summary("width", SIZES, rows, [3.0 * size**2 for size in SIZES])
    assert found.sentence == (
        "width: the device is full from 1 units per layer on, and there time grows with slope 2.00 [2.00, 2.00] "
        "(its work: 2.00)."
    )


def test_a_late_dip_in_the_rate_moves_the_point_of_being_full() -> None:
    # Full at 1 but for the dip at 2, where work is done at half the rate.
    rows = [[1.0, 4.0, 4.0, 8.0, 16.0, 32.0]] * 2
    assert summary("depth", SIZES, rows, [float(size) for size in SIZES]).full_from == 4


@pytest.mark.parametrize("sweep", [CPU_SWEEP, GPU_SWEEP])
def test_every_axis_has_sizes_about_the_middle_that_the_samples_allow(sweep: Sweep) -> None:
    assert list(sweep.axes) == list(AXES) == list(COUNTED)
    for axis, sizes in sweep.axes.items():
        assert list(sizes) == sorted(set(sizes))
        assert sizes[0] <= getattr(sweep.middle, AXES[axis]) <= sizes[-1]
    assert sweep.axes["samples"][-1] <= sweep.middle.images


def test_steps_are_timed_along_every_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    middle = TrainingSize(networks=2, width=4, inputs=3, images=16, batch=4, depth=3)
    axes = {"networks": (1, 2, 3), "depth": (2, 3, 4), "width": (2, 4, 8), "samples": (2, 4, 8)}
    monkeypatch.setattr(scaling, "CPU_SWEEP", Sweep(middle, axes, steps=1))
    told: list[str] = []
    found = measure_scaling(rounds=2, tell=told.append)
    assert told == [each.axis for each in found] == list(axes)
    for each in found:
        assert each.sizes == axes[each.axis]
        assert len(each.seconds) == 2
        assert all(taken > 0 for row in each.seconds for taken in row)
        assert each.low <= each.slope <= each.high
    networks = found[0]
    assert networks.flops == tuple(size * networks.flops[0] for size in (1, 2, 3))
    # A sample costs 2 products forward and backward but for the input's gradient: see test_counting.
    assert networks.flops[0] == 2 * 4 * (2 * 12 + 3 * (2 * 16 + 40))
    with pytest.raises(Refused, match="rounds is 1, but must be at least 2"):
        measure_scaling(rounds=1)


def test_a_rate_that_falls_at_the_largest_size_is_never_full() -> None:
    rows = [[1.0, 2.0, 4.0, 8.0, 16.0, 64.0]] * 2
    found = summary("samples", SIZES, rows, [float(size) for size in SIZES])
    assert found.full_from is None
    assert found.slope > 1.0
    assert "samples: the device does further work at no constant rate; over all sizes" in found.sentence


def test_sizes_timed_apart_or_in_turns_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a GPU each size is a group of its own; a made-up clock tells them apart.
    groups: list[list[int]] = []

    def timed(shapes: Sequence[TrainingSize], steps: int, rounds: int, device: str) -> Any:
        groups.append([shape.networks for shape in shapes])
        seconds = [
            [float(10 * number + shape.networks) for shape in shapes] for number in range(1, rounds + 1)
        ]
        return seconds, [float(shape.networks) for shape in shapes]

    monkeypatch.setattr(scaling, "_in_turns", timed)
    apart, together = (
        scaling._along("networks", (1, 2, 4), CPU_SWEEP, 2, device) for device in ("cuda", "cpu")
    )
    assert groups == [[1], [2], [4], [1, 2, 4]]
    assert apart == together
    assert apart.seconds == ((11.0, 12.0, 14.0), (21.0, 22.0, 24.0))
    assert apart.flops == (1.0, 2.0, 4.0)
