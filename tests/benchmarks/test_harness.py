"""Benchmarks: turns are taken, ratios are to ours, and a case that cannot run is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest

from skiplab.benchmarks import BENCHMARKS, Suite, convolutions, extremes, harness, measure, products
from skiplab.benchmarks.ceilings import Ceiling
from skiplab.benchmarks.extremes import ExtremesSize
from skiplab.benchmarks.harness import Case, Work, interleave
from skiplab.benchmarks.hessian import HessianSize
from skiplab.benchmarks.landscape import landscape_cases
from skiplab.benchmarks.products import ProductSize
from skiplab.benchmarks.training import TrainingSize, joined_cases
from skiplab.checks import Refused
from skiplab.ensembles.layout import Layout


class Clock:
    """A clock that only the cases move."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that take no time."""
    small = convolutions.ConvolutionSize(networks=2, blocks=1, batch=4, steps=1)
    monkeypatch.setattr(convolutions, "CPU_SIZE", small)
    few_products = ProductSize(networks=2, inputs=5, width=4, depth=3, samples=20)
    monkeypatch.setattr(products, "CPU_SIZE", few_products)
    monkeypatch.setattr("skiplab.benchmarks.landscape.DEPTH", 1)
    monkeypatch.setattr("skiplab.benchmarks.ceilings.SIDES", {"cpu": 64})
    monkeypatch.setattr("skiplab.benchmarks.ceilings.COPIED", {"cpu": 2**16})


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
    assert (ours.start_up, other.start_up, missing.start_up) == (7.0, 5.0, None)


def test_a_part_of_the_work_is_scaled_and_rates_are_shares_of_the_ceiling(clock: Clock) -> None:
    def taking(seconds: float) -> Callable[[], None]:
        def work() -> None:
            clock.now += seconds

        return work

    work = Work(flops=120.0, traffic=60.0, units=5, unit="network")
    cases = [
        Case("ours", taking(2.0), precision="tf32", work=work),
        Case("ours, half", taking(1.0), precision="bfloat16", work=work),
        Case("one of five", taking(3.0), precision="tf32", times=5, work=work),
        Case("theirs, half", taking(4.0), precision="bfloat16", work=work),
        Case("no work", taking(1.0), precision="tf32"),
    ]
    ceilings = {"tf32": Ceiling("tf32", flops=240.0, traffic=100.0)}
    ours, half, scaled, theirs, bare = interleave("x", cases, 2, ceilings)
    assert (ours.seconds_per_unit, ours.unit, ours.flops, ours.traffic) == (0.4, "network", 60.0, 30.0)
    assert (ours.flops_share, ours.traffic_share) == (0.25, 0.3)
    assert (scaled.seconds, scaled.ratio, scaled.flops, scaled.start_up) == (15.0, 7.5, 8.0, 0.0)
    # Within a precision: 4 s are four times our second in bfloat16, for which no ceiling was measured.
    assert (half.ratio, theirs.ratio, theirs.flops_share) == (1.0, 4.0, None)
    assert (bare.unit, bare.flops, bare.seconds_per_unit) == ("", None, None)


def test_wrong_names_and_rounds_are_refused() -> None:
    with pytest.raises(Refused, match=r"benchmark 'trainin' is unknown; .*Did you mean training"):
        measure("trainin")
    with pytest.raises(Refused, match="rounds is 0, but must be at least 1"):
        measure("landscape", rounds=0)


def test_both_landscape_programs_find_the_same_losses(monkeypatch: pytest.MonkeyPatch) -> None:
    """A speed is worth nothing unless the same thing was computed."""
    import numpy as np

    monkeypatch.setattr("skiplab.benchmarks.landscape.DEPTH", 1)
    ours, plain = landscape_cases("cpu")
    assert ours.run is not None
    assert plain.run is not None
    np.testing.assert_allclose(np.sort(np.asarray(ours.run())), np.sort(np.asarray(plain.run())), rtol=1e-12)


def test_training_measures_ours_first_against_the_others(monkeypatch: pytest.MonkeyPatch, few: None) -> None:
    size = TrainingSize(networks=2, width=4, inputs=5, images=20, batch=10)
    monkeypatch.setattr("skiplab.benchmarks.training.CPU_SIZE", size)
    rows = measure("training", rounds=1)
    names = ["skiplab, batched", "skiplab, loop", "JAX", "JAX, bfloat16", "plain PyTorch, one by one"]
    assert [row.what for row in rows] == names
    assert rows[0].ratio == 1.0
    for row in (*rows[:2], rows[4]):
        assert row.seconds is not None
        assert row.seconds > 0
        assert row.seconds_per_unit == pytest.approx(row.seconds / 2)
        assert row.flops_share is not None
        assert 0 < row.flops_share < 1
    assert rows[0].note == "2 networks, one epoch of 20 samples"
    assert rows[4].note == "torch.optim.Adam, eager; one network timed, × 2"


def test_ceilings_are_measured_once_for_each_precision(monkeypatch: pytest.MonkeyPatch, few: None) -> None:
    asked: list[str] = []

    def seen(device: str, precision: str) -> Ceiling:
        asked.append(precision)
        return Ceiling(precision, 1.0, 1.0)

    monkeypatch.setattr("skiplab.benchmarks.measure_ceiling", seen)
    ceilings: dict[str, Ceiling] = {}
    for name in ("convolutions", "products", "landscape"):
        measure(name, rounds=1, ceilings=ceilings)
    assert asked == ["bfloat16", "float32"]
    assert set(ceilings) == {"bfloat16", "float32"}


def test_benchmarks_compute_as_trials_do(few: None, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    threads: list[int] = []

    def cases(device: str) -> list[Case]:
        return [Case("x", lambda: threads.append(torch.get_num_threads()))]

    monkeypatch.setitem(BENCHMARKS, "x", (Suite("x", cases),))
    measure("x", rounds=1)
    assert threads == [1, 1]


def test_networks_are_drawn_both_ways_and_timed_per_network(
    few: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = TrainingSize(networks=3, width=8, inputs=16, images=20, batch=10, depth=3)
    monkeypatch.setattr("skiplab.benchmarks.drawing.SIZE", small)
    ours, in_turn = measure("drawing", rounds=1)
    assert (ours.what, in_turn.what) == ("skiplab", "one after the other")
    for row in (ours, in_turn):
        assert row.unit == "network"
        assert row.seconds_per_unit == pytest.approx(row.seconds / 3)  # type: ignore[operator]


def test_adam_at_the_gradients_end_is_timed_on_a_gpu_alone() -> None:
    assert joined_cases("cpu") == []
    assert measure("joined", rounds=1) == []


def test_products_of_all_programs_are_the_same(few: None) -> None:
    import torch

    answer, alone, lone = (case.run() for case in products.product_cases("cpu") if case.run is not None)
    # An ensemble's rows have matrices before vectors, as its layout says; a network's own order is another.
    network = products.CPU_SIZE.network(0)
    names = [name for name, _ in network.named_parameters()]
    by_name = dict(zip(names, lone, strict=True))  # type: ignore[call-overload]
    flat = torch.cat([by_name[name].flatten() for name in Layout.of(network).names])
    torch.testing.assert_close(answer[0, 0], flat, rtol=1e-3, atol=1e-5)  # type: ignore[index]
    torch.testing.assert_close(alone[0, 0], flat, rtol=1e-3, atol=1e-5)  # type: ignore[index]


def test_convolutions_measure_the_way_that_is_chosen_first(few: None) -> None:
    rows = measure("convolutions", rounds=1)
    assert [row.what for row in rows] == [
        "skiplab, loop",
        "skiplab, wide",
        "skiplab, wide, bfloat16",
        "torch.vmap",
        "plain PyTorch, one by one",
    ]
    assert all(row.seconds is not None and row.seconds > 0 for row in rows)
    assert rows[0].note == "2 networks of 5 layers, 1 step(s) of 4 images"
    assert rows[0].seconds_per_unit == pytest.approx(
        rows[0].seconds * 50_000 / 8
    )  # two networks, four images


def test_hessians_are_measured_at_all_sizes_and_absent_peers_named(
    monkeypatch: pytest.MonkeyPatch, few: None
) -> None:
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


@pytest.mark.parametrize("peer", [False, True])
def test_extremes_are_measured_without_torchvision_and_pyhessian_too(
    monkeypatch: pytest.MonkeyPatch, peer: bool
) -> None:
    import sys

    small = ExtremesSize(samples=4, side=4, steps=2, most=6, seeds=2)
    monkeypatch.setattr("skiplab.benchmarks.extremes.SIZE", small)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    monkeypatch.setitem(sys.modules, "torchvision.models", None)
    for name, module in _little_pyhessian().items():
        monkeypatch.setitem(sys.modules, name, module if peer else None)
    rows = measure("extremes", rounds=2)
    each = 2 + (2 if peer else 1)  # two of ours, and the peer's two or that it is missing
    assert [row.benchmark for row in rows] == ["extremes, fresh"] * each + ["extremes, trained"] * each
    first = rows[0]
    assert first.note.startswith("ResNet-20 (without torchvision's resnet18: ")
    assert "as drawn, 269,722 parameters, 4 images of 4 × 4, λ = " in first.note
    assert "after 2 steps of training" in rows[-1].note or not peer
    steps, proofs = [], []
    for row in rows[:2]:
        match = re.fullmatch(r"skiplab: (\d+) products, error .*, proved (0\.\d+) %", row.what)
        assert match is not None
        steps.append(int(match[1]))
        proofs.append(float(match[2]))
    assert steps[0] > steps[1]
    assert proofs[0] <= 0.1 < proofs[1] <= 1
    if peer:
        assert re.match(r"PyHessian: \d.* products, error ", rows[2].what)
        assert re.match(r"PyHessian, (until|not) as exact: \d.* products", rows[3].what)
        assert all(row.seconds is not None for row in rows)
    else:
        assert rows[2].note.startswith("skipped: ")
        assert rows[2].seconds is None


def test_the_stop_of_a_power_iteration_is_that_of_pyhessian() -> None:
    values = [1.0, 2.0, 2.5, 2.501, 2.5012]
    assert extremes._stop(values) == 4  # 2.5 and 2.501 differ by less than a thousandth
    assert extremes._stop(values[:3]) is None
    assert extremes._stop([1.0, 2.0] * 80) == 100


def _little_pyhessian() -> dict[str, ModuleType]:
    """A power iteration with the names and the stop of PyHessian 0.1."""
    import torch

    whole, utils = ModuleType("pyhessian"), ModuleType("pyhessian.utils")

    def products(gradients: Any, parameters: Any, vector: Any) -> Any:
        return torch.autograd.grad(gradients, parameters, vector, retain_graph=True)

    def inner(one: Any, other: Any) -> Any:
        return sum((a * b).sum() for a, b in zip(one, other, strict=True))

    def unit(vector: Any) -> Any:
        length = inner(vector, vector).sqrt()
        return [each / length for each in vector]

    class Operator:
        def __init__(self, model: Any, criterion: Any, data: Any, cuda: bool) -> None:
            self.params = list(model.parameters())
            self.gradsH = torch.autograd.grad(
                criterion(model(data[0]), data[1]), self.params, create_graph=True
            )

        def eigenvalues(self, maxIter: int = 100, tol: float = 1e-3, top_n: int = 1) -> Any:
            vector, value = unit([torch.randn(p.size()) for p in self.params]), None
            for _ in range(maxIter):
                image = products(self.gradsH, self.params, vector)
                before, value = value, inner(image, vector).item()
                vector = unit(image)
                if before is not None and abs(before - value) / (abs(before) + 1e-6) < tol:
                    return [before], [vector]
            return [value], [vector]

    whole.hessian, whole.utils = Operator, utils  # type: ignore[attr-defined]
    utils.group_product, utils.hessian_vector_product = inner, products  # type: ignore[attr-defined]
    utils.normalization = unit  # type: ignore[attr-defined]
    return {"pyhessian": whole, "pyhessian.utils": utils}
