"""Second moments of a pair of gradients, kept as logarithms since they double or halve with every layer."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Moments:
    """E[∇_i²] and E[∇_i ∇_j] of a pair of inputs as the paper writes them, about 0, and E[∇_i] beside them.

    Logarithms are kept, so that correlations are right at any depth; a moment that is past the floats reads inf
    or 0. To base 2, which leaves the powers of 2 of theorems 1 and 2 exact.
    """

    log2_variance: float
    log2_correlation: float
    log2_mean: float = -math.inf  # of its absolute value
    sign: int = 1  # of the mean

    @property
    def variance(self) -> float:
        """C(i), the second moment of a gradient."""
        return exp2(self.log2_variance)

    @property
    def covariance(self) -> float:
        """C(i, j), the mean product of the gradients at two inputs."""
        return exp2(self.log2_variance + self.log2_correlation)

    @property
    def mean(self) -> float:
        """E[∇_i]."""
        return self.sign * exp2(self.log2_mean)

    @property
    def correlation(self) -> float:
        """R(i, j) of definition 1, the two inputs having the same variance."""
        return exp2(self.log2_correlation)

    def __repr__(self) -> str:
        return f"Moments(variance={self.variance}, covariance={self.covariance}, mean={self.mean})"


def log2(value: float) -> float:
    """log₂, −∞ at 0."""
    return math.log2(value) if value else -math.inf


def log2_1p(value: float) -> float:
    """log₂(1 + value), −∞ at −1, with all digits near 0."""
    return math.log1p(value) / math.log(2) if value > -1 else -math.inf


def exp2(value: float) -> float:
    """2^value, inf where that is past the floats."""
    return 2.0**value if value < 1024 else math.inf
