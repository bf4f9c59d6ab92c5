"""Matrices with known eigenvalues, which the matrix-free routines see only through products."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
from torch import Tensor

from skiplab.randomness import torch_generator


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Small eigenproblems on shared cores are many times slower with more threads than free cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def generator() -> torch.Generator:
    return torch_generator(0, "linear algebra tests")


@pytest.fixture
def with_eigenvalues() -> Callable[..., Tensor]:
    """Make symmetric matrices (*lead, P, P) with given eigenvalues (*lead, P) in a random basis."""

    def make(eigenvalues: Tensor, seed: int = 0) -> Tensor:
        size = eigenvalues.shape[-1]
        drawn = torch.randn(
            (*eigenvalues.shape, size), generator=torch_generator(seed, "basis"), dtype=torch.float64
        )
        basis = torch.linalg.qr(drawn).Q
        matrix = basis @ (eigenvalues.double()[..., None] * basis.mT)
        return (matrix + matrix.mT) / 2

    return make
