"""A step's kernels: per step, the longest first, short ones together."""

from __future__ import annotations

import pytest

from skiplab.benchmarks import convolutions, products, profile, training
from skiplab.benchmarks.profile import Kernel, longest_first, profile_of
from skiplab.benchmarks.steps import noise, our_step, own_batches
from skiplab.benchmarks.training import TrainingSize
from skiplab.ensembles import Ensemble

SIZE = TrainingSize(networks=2, width=8, inputs=16, images=20, batch=10, depth=3)


def test_times_are_per_step_and_the_longest_comes_first() -> None:
    found = longest_first([("short", 10.0, 4), ("void at::native::long", 30.0, 2), ("never", 0.0, 2)], 2)
    long = Kernel("void at::native::long", pytest.approx(15e-6), 1.0)
    assert found == (long, Kernel("short", pytest.approx(5e-6), 2.0))
    assert [kernel.short_name for kernel in found] == ["long", "short"]


def test_kernels_whose_names_begin_alike_are_not_one() -> None:
    names = ["x" * 60 + end for end in "ab"]
    found = longest_first([(names[0], 1.0, 1), (names[1], 2.0, 1), (names[0], 4.0, 1)], 1)
    assert found == (Kernel(names[0], pytest.approx(5e-6), 2.0), Kernel(names[1], pytest.approx(2e-6), 1.0))
    assert {kernel.short_name for kernel in found} == {"x" * 47 + "…"}


def test_what_is_not_named_is_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "MOST_KERNELS", 1)
    first, *others = longest_first(
        [(name, time, 1) for name, time in zip("abc", (1.0, 2.0, 4.0), strict=True)], 1
    )
    assert first.name == "c"
    assert others == [Kernel(profile.OTHERS, pytest.approx(3e-6), 2.0)]


def test_every_step_and_product_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "CPU_SIZE", SIZE)
    monkeypatch.setattr(
        convolutions, "CPU_SIZE", convolutions.ConvolutionSize(networks=2, blocks=2, batch=2, steps=1)
    )
    size = products.ProductSize(networks=2, inputs=5, width=4, depth=3, samples=20)
    monkeypatch.setattr(products, "CPU_SIZE", size)
    found = profile.measure_profiles("cpu", times=1)
    assert [each.what for each in found] == [
        "one training step of 2 residual networks of 3 layers",
        "one training step of 2 convolutional networks of 8 layers",
        "one training step of 2 ResNets of 8 layers, normalised",
        "one Hessian product each of 2 networks of 3 layers",
        "one Hessian product of one network of 3 layers",
        "one trial of 2 residual networks of 3 layers, one epoch",
    ]
    *found, trial = found
    assert ({each.piece for each in found}, trial.piece) == ({"kernel"}, "part")
    assert [(part.name, part.calls) for part in trial.kernels] == [
        ("networks drawn and stacked", 2),
        ("the first step", 1),
        ("an epoch's shuffles", 2),
        ("an epoch's steps", 2),
        ("gradient norms", 1),
        ("state saved", 1),
    ]
    assert all(part.seconds > 0 for part in trial.kernels)
    assert trial.seconds == pytest.approx(sum(part.seconds for part in trial.kernels))
    called = [{kernel.name.removeprefix("aten::") for kernel in each.kernels} for each in found]
    for each, names in zip(found, called, strict=True):
        assert each.seconds > 0
        assert any("mm" in name or "convolution" in name for name in names)
    assert ["native_batch_norm" in names for names in called] == [False, False, True, False, False]


def test_every_member_has_samples_of_its_own_as_in_training() -> None:
    data = noise(SIZE.images, SIZE.inputs, device="cpu")
    step = our_step(Ensemble.of([SIZE.network(seed) for seed in range(SIZE.networks)]), data)
    one, other = own_batches(step, SIZE.batch).tolist()
    assert all(len(set(each)) == SIZE.batch and set(each) <= set(range(SIZE.images)) for each in (one, other))
    assert set(one) != set(other)


def test_a_step_is_taken_apart() -> None:
    data = noise(SIZE.images, SIZE.inputs, device="cpu")
    ensemble = Ensemble.of([SIZE.network(seed) for seed in range(SIZE.networks)])
    step = our_step(ensemble, data)
    indices = own_batches(step, SIZE.batch)
    found = profile_of("two networks", lambda: step(indices), "cpu", times=2)
    assert found.what == "two networks"
    products = [kernel for kernel in found.kernels if "mm" in kernel.name]
    assert products
    assert all(kernel.calls > 0 for kernel in found.kernels)
    assert found.seconds > 0
