"""Examples in docstrings do what they say.

They may use what a reader has at hand: a ``model`` of three linear layers, 16 samples ``x`` with labels ``y``, a
symmetric ``matrix``, a ``generator``, and the names of their own module.
"""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import skiplab
from skiplab.randomness import torch_generator

SOURCE = Path(skiplab.__file__).parent
MODULES = sorted(
    ".".join(("skiplab", *path.relative_to(SOURCE).with_suffix("").parts))
    for path in SOURCE.rglob("*.py")
    if ">>> " in path.read_text()
)


@pytest.fixture
def at_hand() -> dict[str, Any]:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
        x, y = torch.randn(16, 4), torch.arange(16) % 3
    matrix = torch.diag(torch.arange(1.0, 11, dtype=torch.float64))
    return {"torch": torch, "model": model, "x": x, "y": y, "matrix": matrix, "generator": torch_generator(0)}


@pytest.mark.parametrize("module", MODULES)
def test_examples_in_docstrings(module: str, at_hand: dict[str, Any]) -> None:
    found = doctest.testmod(importlib.import_module(module), extraglobs=at_hand)
    assert found.attempted > 0
    assert found.failed == 0
