"""What a branch's output is multiplied by: a formal variable t, or a number on the unit circle.

The network with its gates held fixed is a polynomial in t, F(t) = Σ_r c_r t^r, where c_r is what comes through paths
of length r. A tensor then has coordinates along a first axis, and multiplying it by t is a matrix on that axis:

- ``Polynomial``: coordinates are c_0 … c_R, and t shifts them by one; exact, R + 1 vectors for every activity.
- ``Rotation``: t = e^{iθ}; coordinates are real and imaginary parts of F and of dF/dθ, whatever R. By Parseval the
  mean of |F|² over θ is Σ c_r², that of F̄ (−i dF/dθ) is Σ r c_r².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor


class Formal(Protocol):
    """A variable that counts branches."""

    @property
    def size(self) -> int:
        """Number of coordinates; a constant has its value in the first and 0 in the others."""

    def times(self, parts: Tensor) -> Tensor:
        """Coordinates (size, …) of what is once more multiplied by t."""


@dataclass(frozen=True)
class Polynomial:
    """Coefficients up to t^degree."""

    degree: int

    @property
    def size(self) -> int:
        return self.degree + 1

    def times(self, parts: Tensor) -> Tensor:
        return torch.cat([torch.zeros_like(parts[:1]), parts[:-1]])


@dataclass(frozen=True)
class Rotation:
    """t = e^{iθ}, and the derivative in θ."""

    angle: float
    size: int = 4

    def times(self, parts: Tensor) -> Tensor:
        c, s = math.cos(self.angle), math.sin(self.angle)
        real, imaginary, real_slope, imaginary_slope = parts
        turned = (c * real - s * imaginary, s * real + c * imaginary)
        # d(tz)/dθ = t dz/dθ + i t z
        slopes = (c * real_slope - s * imaginary_slope, s * real_slope + c * imaginary_slope)
        return torch.stack([*turned, slopes[0] - turned[1], slopes[1] + turned[0]])
