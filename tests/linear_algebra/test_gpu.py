"""The same numbers on a GPU as on the CPU, within the memory that was said."""

from __future__ import annotations

import pytest
import torch

from skiplab.linear_algebra import (
    available_bytes,
    dense_matrix,
    extreme_eigenvalues,
    gauss,
    lanczos,
    lanczos_bytes,
    mass_limits,
    matrix_eigenvalues,
    plan,
    probes,
)
from skiplab.randomness import torch_generator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def test_a_gpu_agrees_with_the_cpu(with_eigenvalues):
    matrices = with_eigenvalues(torch.randn(3, 50, generator=torch_generator(0)))
    start = probes((3,), 4, 50, torch_generator(1))
    results = []
    for device in ("cpu", "cuda"):
        there = matrices.to(device)

        def product(vectors, there=there):
            return vectors @ there

        found = lanczos(product, start.to(device), 15)
        ends = extreme_eigenvalues(
            product, 50, 3, torch_generator(2), which="both", lead=(3,), device=device, vectors=True
        )
        numbers = (
            found.diagonal,
            gauss(found).nodes,
            *mass_limits(found, 0.1),
            ends.values,
            ends.vectors.abs(),
            matrix_eigenvalues(dense_matrix(product, 50, lead=(3,), device=device)),
        )
        assert all(tensor.device.type == device for tensor in numbers)
        results.append([tensor.cpu() for tensor in numbers])
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(here, there, rtol=0, atol=1e-5)


@pytest.mark.parametrize("storage", [torch.float32, torch.float64])
def test_lanczos_stays_within_the_memory_it_states(storage):
    diagonal = torch.randn(3, 1, 200_000, device="cuda", dtype=torch.float64)
    start = probes((3,), 4, 200_000, torch_generator(1), device="cuda")
    diagonal[:, :, :4] @ diagonal[
        :, :, :4
    ].mT  # cuBLAS takes its own workspace at its first product and keeps it
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    lanczos(lambda v: v * diagonal, start, 40, storage=storage)
    taken = torch.cuda.max_memory_allocated() - before
    stated = lanczos_bytes(3, 4, 200_000, 40, storage=storage)
    assert 0.7 * stated < taken <= 1.02 * stated


def test_free_memory_of_the_gpu_is_the_budget():
    free = available_bytes("cuda")
    assert 0 < free <= torch.cuda.get_device_properties(0).total_memory
    assert plan(1, 1, 100, 10, device="cuda").budget <= free
