"""The gradient of a one-layer net as Brownian motion: Balduzzi et al. (2017), proposition A1 and section A2.

For f(x) = Σ w_i ρ(x − b_i) with w of mean 0 and variance 1/N,

    f′(x) = Σ_{x > b_i} w_i   (A2),

so in the order of the biases, and against the fraction t of active neurons, f′ is the random walk S_⌊Nt⌋, which tends
to Brownian motion (Donsker). Against x itself the clock is the biases' distribution function F, and the covariance
is min(F(x), F(y)) for every N; about a given net's own biases it is the share of them below both.

Karhunen–Loève: K(s, t) = min(s, t) on [0, 1] has eigenvalues 1/((k − ½)²π²) and eigenfunctions √2 sin((k − ½)πt).
The walk itself is a step function, so its kernel has N − 1 non-zero eigenvalues, known in closed form as well.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skiplab.checks import at_least, require

Array = NDArray[np.float64]


def gradient_of_one_layer(x: ArrayLike, weights: ArrayLike, biases: ArrayLike) -> Array:
    """f′ at the inputs: Σ w_i over the neurons with x > b_i (A2).

    Weights and biases are (…, N), leading axes being nets; the answer is (…, inputs).
    """
    w, b, x = (np.asarray(each, dtype=np.float64) for each in (weights, biases, x))
    require(w.shape == b.shape, f"weights of shape {w.shape} do not fit biases of shape {b.shape}.")
    order = np.argsort(b, axis=-1, kind="stable")
    walk = walk_of(np.take_along_axis(w, order, axis=-1))
    ordered = np.take_along_axis(b, order, axis=-1).reshape(-1, b.shape[-1])
    active = np.stack([np.searchsorted(each, x, side="left") for each in ordered])  # strictly below x
    return np.take_along_axis(walk, active.reshape(*b.shape[:-1], -1), axis=-1)


def walk_of(weights: ArrayLike) -> Array:
    """S_0 … S_N, the gradient by number of active neurons, (…, N + 1), for weights in the order of their biases."""
    steps = np.asarray(weights, dtype=np.float64)
    return np.concatenate([np.zeros((*steps.shape[:-1], 1)), steps.cumsum(axis=-1)], axis=-1)


def covariance(s: ArrayLike, t: ArrayLike, neurons: int | None = None) -> Array:
    """min(s, t), the covariance of Brownian motion, or min(⌊Ns⌋, ⌊Nt⌋)/N of the walk of N neurons."""
    s, t = np.asarray(s, dtype=np.float64), np.asarray(t, dtype=np.float64)
    if neurons is None:
        return np.minimum(s, t)
    at_least("neurons", neurons, 1)
    # N·(i/N) may round to just below i.
    whole = [np.floor(neurons * each + 1e-9) for each in (s, t)]
    return np.minimum(*whole) / neurons


def covariance_in_x(x: ArrayLike, y: ArrayLike, bias_std: float) -> Array:
    """E[f′(x) f′(y)] = min(F(x), F(y)) for biases from N(0, bias_std²), at every N."""
    require(bias_std > 0, f"bias_std is {bias_std}, but biases need a positive spread.")
    from scipy.special import ndtr

    return np.asarray(ndtr(np.minimum(x, y) / bias_std), dtype=np.float64)


def eigenvalues(count: int, neurons: int | None = None) -> Array:
    """The largest eigenvalues of the covariance as an integral operator on [0, 1].

    Brownian motion: 1/((k − ½)²π²). The walk S_⌊Nt⌋ of N neurons: 1/(4N² sin²((k − ½)π/(2N − 1))) for k < N,
    the eigenvalues of min(i, j)/N² over i, j = 1 … N − 1, and zeros.
    """
    at_least("count", count, 1)
    k = np.arange(1, count + 1, dtype=np.float64)
    if neurons is None:
        return 1 / ((k - 0.5) * math.pi) ** 2
    at_least("neurons", neurons, 1)
    inside = k < neurons
    angle = np.where(inside, (k - 0.5) * math.pi / (2 * neurons - 1), math.pi / 2)
    return np.where(inside, 1 / (2 * neurons * np.sin(angle)) ** 2, 0.0)


def eigenfunctions(t: ArrayLike, count: int) -> Array:
    """√2 sin((k − ½)πt) for k = 1 … count, shape (count, points)."""
    at_least("count", count, 1)
    k = np.arange(1, count + 1, dtype=np.float64)
    return math.sqrt(2.0) * np.sin(np.multiply.outer((k - 0.5) * math.pi, np.asarray(t, dtype=np.float64)))


def components(walks: ArrayLike, count: int) -> Array:
    """F_k = ∫ X_t e_k(t) dt of walks S_0 … S_N, (…, count), exactly: e_k is integrated over each step."""
    walks = np.asarray(walks, dtype=np.float64)
    at_least("count", count, 1)
    neurons = walks.shape[-1] - 1
    k = np.arange(1, count + 1, dtype=np.float64)
    frequency = (k - 0.5) * math.pi
    edges = np.cos(np.multiply.outer(frequency, np.arange(neurons + 1) / neurons))
    over_steps = math.sqrt(2.0) * (edges[:, :-1] - edges[:, 1:]) / frequency[:, None]
    return np.asarray(walks[..., :-1] @ over_steps.T)
