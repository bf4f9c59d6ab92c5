"""The JAX peer does the same work: from the same weights, on the same batches, it comes to the same weights."""

from __future__ import annotations

import sys

import pytest
import torch

from skiplab.benchmarks.steps import noise, our_step
from skiplab.benchmarks.training import TrainingSize, training_cases
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator

SIZE = TrainingSize(networks=3, width=6, inputs=5, images=24, batch=8, depth=4)


def test_without_a_gpu_the_peer_is_named_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skiplab.benchmarks.training.CPU_SIZE", SIZE)
    peers = [case for case in training_cases("cpu") if case.what.startswith("JAX")]
    assert [(case.what, case.run, case.note) for case in peers] == [
        ("JAX", None, "skipped: JAX is timed on a GPU only"),
        ("JAX, bfloat16", None, "skipped: JAX is timed on a GPU only"),
    ]


def test_a_missing_jax_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from skiplab.benchmarks.jax_peer import jax_epoch

    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(ImportError, match="jax"):
        jax_epoch(SIZE, "cuda", mixed=False)


@pytest.mark.parametrize(("mixed", "tolerance"), [(False, 1e-5), (True, 2e-3)])
def test_the_peer_trains_as_ours_does(mixed: bool, tolerance: float) -> None:
    jax = pytest.importorskip("jax")
    from skiplab.benchmarks import jax_peer

    data = noise(SIZE.images, SIZE.inputs, device="cpu")
    orders = [torch.randperm(SIZE.images, generator=torch_generator(s)) for s in range(SIZE.networks)]
    order = torch.stack(orders).reshape(SIZE.networks, -1, SIZE.batch).transpose(0, 1)
    ensemble = Ensemble.of([SIZE.network(seed) for seed in range(SIZE.networks)])
    before = {name: tensor.clone() for name, tensor in ensemble.parameters.items()}
    step = our_step(ensemble, data, mixed=mixed)
    for indices in order:
        step(indices)
    inputs, labels = jax_peer.arrays(data)
    state = jax.jit(jax_peer.steps(mixed=mixed))(jax_peer.start(SIZE), inputs, labels, order.numpy())
    for name, ours in ensemble.parameters.items():
        theirs = torch.tensor(state["parameters"][name].tolist())
        torch.testing.assert_close(theirs, ours, rtol=0, atol=tolerance)
        # Every parameter has moved by more than the tolerance of float32 can hide.
        assert (ours - before[name]).abs().max() > 50 * 1e-5
