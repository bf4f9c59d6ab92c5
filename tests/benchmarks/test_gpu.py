"""On a GPU: every benchmark runs at a small size in the precision of studies, JAX among the peers where it is.

Run with ``python -m pytest -m gpu tests/benchmarks``; without a CUDA device all of it is skipped.
"""

from __future__ import annotations

import importlib.util
from dataclasses import replace

import pytest
import torch

from skiplab.benchmarks import convolutions, measure, products, scaling, training
from skiplab.benchmarks.scaling import Sweep, measure_scaling
from skiplab.benchmarks.training import TrainingSize

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # torch.compile warns about the machine and about torch itself.
    pytest.mark.filterwarnings("default"),
]


def test_training_is_timed_in_tf32_and_bfloat16_against_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    size = TrainingSize(networks=4, width=32, inputs=64, images=400, batch=100, depth=3)
    monkeypatch.setattr(training, "GPU_SIZE", size)
    monkeypatch.setattr(training, "MANY", 6)
    rows = measure("training", rounds=2, device="cuda")
    assert [(row.benchmark, row.what, row.precision) for row in rows] == [
        ("training", "skiplab, batched", "tf32"),
        ("training", "skiplab, batched, float32 as two bfloat16 parts", "tf32"),
        ("training", "skiplab, batched, bfloat16", "bfloat16"),
        ("training", "JAX", "tf32"),
        ("training", "JAX, bfloat16", "bfloat16"),
        ("training", "plain PyTorch, one by one", "tf32"),
        ("training, many", "skiplab, batched", "tf32"),
        ("training, many", "skiplab, batched, float32 as two bfloat16 parts", "tf32"),
        ("training, many", "skiplab, batched, bfloat16", "bfloat16"),
    ]
    there = importlib.util.find_spec("jax") is not None
    assert all(row.flops_share is not None for row in rows if there or not row.what.startswith("JAX"))


def test_adam_at_the_gradients_end_is_timed_beside_adam_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    size = TrainingSize(networks=4, width=32, inputs=64, images=400, batch=100, depth=3)
    monkeypatch.setattr(training, "GPU_SIZE", size)
    rows = measure("joined", rounds=2, device="cuda")
    ours = "skiplab, batched, bfloat16"
    assert [row.what for row in rows] == [ours, f"{ours}, Adam at the gradients' end"]


def test_convolutions_and_products_have_shares_of_the_ceiling(monkeypatch: pytest.MonkeyPatch) -> None:
    small = convolutions.ConvolutionSize(networks=2, blocks=1, batch=8, steps=2)
    monkeypatch.setattr(convolutions, "GPU_SIZE", small)
    monkeypatch.setattr(convolutions, "MANY", 3)
    monkeypatch.setattr(convolutions, "NORMALISED", replace(small, normalised=True))
    few = products.ProductSize(networks=2, inputs=16, width=8, depth=3, samples=50)
    monkeypatch.setattr(products, "GPU_SIZE", few)
    for name in ("convolutions", "products"):
        for row in measure(name, rounds=2, device="cuda"):
            assert row.precision in ("tf32", "bfloat16")
            assert row.flops_share is not None
            assert 0 < row.flops_share < 1


def test_scaling_has_a_slope_for_every_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    middle = TrainingSize(networks=2, width=16, inputs=16, images=64, batch=16, depth=3)
    axes = {"networks": (1, 2, 4), "samples": (8, 16, 32)}
    monkeypatch.setattr(scaling, "GPU_SWEEP", Sweep(middle, axes, steps=2))
    assert [each.axis for each in measure_scaling(rounds=2, device="cuda")] == ["networks", "samples"]
