"""Whether two ways of computing the same agree: the faster is taken only where they do."""

from __future__ import annotations

import torch
from torch import Tensor


def close(one: Tensor, other: Tensor) -> bool:
    """Whether they differ by no more than rounding along a pass makes of it, relative to the second's norm."""
    tolerance = 1e-3 if other.dtype == torch.float32 else 1e-10
    return bool((one - other).norm() <= tolerance * other.norm())
