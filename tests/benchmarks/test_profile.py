"""A step's kernels: per step, the longest first, short ones together."""

from __future__ import annotations

import pytest
import torch

from skiplab.benchmarks import profile
from skiplab.benchmarks.profile import Kernel, longest_first, profile_of
from skiplab.benchmarks.steps import noise, our_step
from skiplab.benchmarks.training import TrainingSize
from skiplab.ensembles import Ensemble

SIZE = TrainingSize(networks=2, width=8, inputs=16, images=20, batch=10, depth=3)


def test_times_are_per_step_and_the_longest_comes_first() -> None:
    found = longest_first([("short", 10.0, 4), ("void at::native::long", 30.0, 2), ("never", 0.0, 2)], 2)
    assert found == (Kernel("long", pytest.approx(15e-6), 1.0), Kernel("short", pytest.approx(5e-6), 2.0))


def test_what_is_not_named_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MOST_KERNELS", 1)
    first, *others = longest_first(
        [(name, time, 1) for name, time in zip("abc", (1.0, 2.0, 4.0), strict=True)], 1
    )
    assert first.name == "c"
    assert others == [Kernel(profile.OTHERS, pytest.approx(3e-6), 2.0)]


def test_a_step_is_taken_apart() -> None:
    data = noise(SIZE.images, SIZE.inputs, device="cpu")
    ensemble = Ensemble.of([SIZE.network(seed) for seed in range(SIZE.networks)])
    step = our_step(ensemble, data)
    indices = torch.arange(SIZE.batch).expand(SIZE.networks, -1)
    found = profile_of("two networks", lambda: step(indices), "cpu", times=2)
    assert found.what == "two networks"
    products = [kernel for kernel in found.kernels if "mm" in kernel.name]
    assert products
    assert all(kernel.calls > 0 for kernel in found.kernels)
    assert found.seconds > 0
