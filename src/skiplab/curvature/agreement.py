"""Whether two ways of computing the same agree: the faster is taken only where they do."""

from __future__ import annotations

import torch
from torch import Tensor


def close(one: Tensor, other: Tensor, dim: int | None = None) -> bool:
    """Whether they differ by no more than rounding along a pass makes of it, relative to the second's norm.

    With an axis, each vector along it has to, relative to its own norm.
    """
    tolerance = 1e-3 if other.dtype == torch.float32 else 1e-10
    apart, length = (torch.linalg.vector_norm(each, dim=dim) for each in (one - other, other))
    return bool((apart <= tolerance * length).all())
