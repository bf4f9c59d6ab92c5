"""Principal components: the few directions along which a set of images varies most.

x ≈ μ + Σ_i z_i v_i, where v_i are the eigenvectors of the covariance C = (1/N) Σ_n (x_n−μ)(x_n−μ)ᵀ with the
largest eigenvalues. Signs, which the equation leaves open, are fixed: the entry of v_i that is largest in
size is positive.

For bytes the sums Σ x xᵀ are whole numbers, hence exact whatever the order in which they are added. What
follows them runs on one thread, so that the result does not depend on how many there are.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from skiplab.checks import at_least, require

CHUNK = 4_096


@dataclass(frozen=True)
class Principal:
    """A fitted reduction: the mean (D), directions (D×k, orthonormal) and variances (k, falling)."""

    mean: np.ndarray = field(repr=False)
    directions: np.ndarray = field(repr=False)
    variances: np.ndarray

    def project(self, features: np.ndarray) -> np.ndarray:
        """Coordinates (N×k, float64) of features (N×D) along the directions."""
        coordinates = np.empty((len(features), len(self.variances)))
        offset = self.mean @ self.directions
        with threadpool_limits(1):
            for start in range(0, len(features), CHUNK):
                rows = slice(start, start + CHUNK)
                coordinates[rows] = features[rows].astype(np.float64) @ self.directions - offset
        return coordinates


def principal_components(features: np.ndarray, count: int) -> Principal:
    """Fit the first ``count`` principal components of features (N×D) in float64.

    Example: points on a line through (3, 4) vary along (.6, .8) only.

    >>> fitted = principal_components(np.array([[0, 0], [3, 4], [6, 8]]), 1)
    >>> fitted.directions.ravel().round(12).tolist()
    [0.6, 0.8]
    """
    number, dimensions = features.shape
    at_least("the number of components", count, 1)
    require(
        count <= dimensions,
        f"components is {count}, but there are only {dimensions} features; "
        f"ask for at most {dimensions}, or for components=None to keep them as they are.",
    )
    require(
        count < number,
        f"components is {count}, but {number} images span at most {number - 1}; use more images.",
    )
    mean = features.mean(axis=0, dtype=np.float64)
    with threadpool_limits(1):
        fit = _from_covariance if dimensions <= number else _from_products
        variances, directions = fit(features, mean, count)
    # Below this a direction is rounding error, and would differ from machine to machine.
    require(
        variances[-1] > 1e-12 * max(variances[0], 1e-300),
        f"components is {count}, but the {number} images vary along fewer directions; ask for fewer.",
    )
    directions = directions / np.linalg.norm(directions, axis=0)
    largest = directions[np.abs(directions).argmax(axis=0), np.arange(count)]
    return Principal(mean, directions * np.where(largest < 0, -1.0, 1.0), variances)


def _from_covariance(features: np.ndarray, mean: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    number, dimensions = features.shape
    # Bytes less 128 have products of at most 2¹⁴, so float32, twice as fast, is exact for 2¹⁰ rows at a time.
    bytewise = features.dtype == np.uint8
    shift, chunk, dtype = (128, 1_024, np.float32) if bytewise else (0, CHUNK, np.float64)
    sums = np.zeros((dimensions, dimensions))
    for start in range(0, number, chunk):
        rows: np.ndarray = features[start : start + chunk].astype(dtype)
        rows -= shift
        sums += rows.T @ rows
    shifted = mean - shift
    return _leading(sums / number - np.outer(shifted, shifted), count)


def _from_products(features: np.ndarray, mean: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """With fewer images than features, from the N×N inner products: v ∝ Xᵀu, to be normalised."""
    number, dimensions = features.shape
    products = np.zeros((number, number))
    for start in range(0, dimensions, CHUNK):
        columns = features[:, start : start + CHUNK].astype(np.float64)
        products += columns @ columns.T
    with_mean = products.mean(axis=1)
    products -= with_mean[:, None] + with_mean[None, :] - with_mean.mean()
    variances, vectors = _leading(products / number, count)
    directions = np.empty((dimensions, count))
    for start in range(0, dimensions, CHUNK):
        part = slice(start, start + CHUNK)
        directions[part] = (features[:, part].astype(np.float64) - mean[part]).T @ vectors
    return variances, directions


def _leading(matrix: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.linalg import eigh

    size = len(matrix)
    values, vectors = eigh(matrix, subset_by_index=[size - count, size - 1])
    return values[::-1].copy(), vectors[:, ::-1].copy()
