"""Smallest eigenvalues of random matrices of the Gaussian orthogonal ensemble (GOE).

A GOE matrix of size Λ (diagonal variance 2, others 1; spectrum in about ±2√Λ) has the eigenvalues of a tridiagonal
matrix with independent entries: N(0, 2) on the diagonal and χ_{Λ−1}, …, χ_1 beside it (Dumitriu & Edelman, Matrix
models for beta ensembles, 2002). Its smallest eigenvalue is found for many matrices at once by bisection with Sturm
sequences, in Λ numbers per matrix instead of Λ².
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from skiplab.checks import whole_numbers

Array = NDArray[np.float64]
AT_ONCE = 4096  # matrices whose rows of a Sturm sequence stay in a processor's cache
HALVINGS = 44  # from a width of about 50 to 3e-12


def smallest_eigenvalues(size: int, count: int, generator: np.random.Generator) -> Array:
    """The smallest eigenvalue of each of so many GOE matrices, shape (count,)."""
    whole_numbers(size=size, count=count)
    found = [
        _smallest(*tridiagonals(size, min(AT_ONCE, count - first), generator))
        for first in range(0, count, AT_ONCE)
    ]
    return np.concatenate(found)


def tridiagonals(size: int, count: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Diagonals (size, count), and squares of what is beside them (size − 1, count)."""
    diagonal = generator.normal(scale=np.sqrt(2), size=(size, count))
    degrees = np.arange(size - 1, 0, -1)[:, None]
    return diagonal, generator.chisquare(degrees, size=(size - 1, count))


def _smallest(diagonal: Array, squares: Array) -> Array:
    beside = np.sqrt(np.pad(squares, ((1, 1), (0, 0))))
    low = (diagonal - beside[:-1] - beside[1:]).min(axis=0)  # Gershgorin's circles
    high = diagonal.min(axis=0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        below = _is_above_smallest(diagonal, squares, middle)
        high, low = np.where(below, middle, high), np.where(below, low, middle)
    return np.asarray((low + high) / 2)


def _is_above_smallest(diagonal: Array, squares: Array, at: Array) -> NDArray[np.bool_]:
    """Whether a number is above the smallest eigenvalue: a pivot of T − at·I is negative."""
    pivot = diagonal[0] - at
    least = pivot.copy()
    for row in range(1, len(diagonal)):
        # A pivot of exactly 0 divides by 0 to −∞, which is negative and so counted.
        pivot = diagonal[row] - at - squares[row - 1] / pivot
        np.minimum(least, pivot, out=least)
    return np.asarray(least < 0)
