"""Explicit random streams: every draw names what it is for, and no draw touches global state.

A stream is named by parts, say (seed, "shuffle", epoch). The same parts give the same stream on every
machine, so a training run can be resumed at any epoch without saving a generator's state.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import torch


def derive(*parts: int | str) -> int:
    """Hash the parts of a stream's name to a 63-bit seed."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def torch_generator(*parts: int | str, device: str | torch.device = "cpu") -> torch.Generator:
    """Return a fresh torch generator for the stream that the parts name."""
    import torch

    return torch.Generator(device=device).manual_seed(derive(*parts))


def numpy_generator(*parts: int | str) -> np.random.Generator:
    """Return a fresh numpy generator for the stream that the parts name."""
    import numpy as np

    return np.random.default_rng(derive(*parts))
