"""Gradients as sums over active paths: Balduzzi et al. (2017), lemmas A1–A3, exactly on tiny nets.

A path takes one neuron a layer; its weight W_α is the product of the weights it crosses and it is active if all
its neurons are. A path crosses a weight at most once, so for independent weights of mean 0 and variance σ²

    E[W_α W_β] = σ^(2 · weights crossed) if α and β cross the same weights, else 0   (A3),

whatever the law. Paths are kept here with the *set* of weights that they cross, which makes every covariance a
finite exact sum, also where two paths share a set; ``sign_weights`` lists all nets with weights ±σ, over which
expectations are plain means.

Lemma A1 holds as printed for L ≥ 2 layers, with L gates and L − 1 weights; at L = 1 paths cross no weight and are
sure. Lemma A2 has L + 1 layers and L weights, so the
exponent becomes 2L, and neuron i, where the path starts, has no gate (x_l = ρ(W x_l−1)). Under equation 2,
x_l = W ρ(x_l−1), it has one, and the last layer has none: L gates again, one place earlier (``gate_first``).

Lemma A3 needs mending. As printed, a residual path (F, α) carries ∏ W[α_i, α_i+1, F_i] over i < |F|, so that paths
of one neuron have the sure weight 1 and are correlated with each other and with the empty path, and F = {1, 2} and
F = {1, 3} carry the *same* weight W[α₁, α₂, 1]; its exponent 2(|F| − 1) is −2 at F = ∅, and it sums over F ⊂ [L + 1]
where paths have F ⊂ [L]. Mended: a skipped layer keeps the neuron, the path starts at neuron α₀ and crosses one
weight for every layer in F, ∏ W[α_i−1, α_i, F_i] over i ≤ |F|. Then E[r(A) r(B)] = Σ_F |A ∩ B|_F σ^(2|F|), which is
what the proof of theorem 2 uses (its σ² stands in front of the sum). The mean is 1, from F = ∅.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skiplab.checks import require

Array = NDArray[np.float64]
Gates = NDArray[np.bool_]  # (layers, N): which neurons are active
Weight = tuple[int, int, int]  # layer, neuron before, neuron after: an index into an array (layers, N, N)
Neuron = tuple[int, int]  # layer, neuron: an index into gates

LARGEST = 16  # weights of a net whose sign patterns are listed, 65,536 nets


@dataclass(frozen=True)
class Path:
    """A path by the weights it crosses and the neurons that must be active."""

    weights: frozenset[Weight]
    neurons: tuple[Neuron, ...]

    def weight(self, W: Array) -> Array:
        """W_α, the product of the weights crossed, for nets (…, layers, N, N); 1 if there are none."""
        return np.asarray(math.prod((W[..., *at] for at in self.weights), start=np.ones(W.shape[:-3])))

    def active(self, gates: Gates) -> bool:
        """A_α: whether every neuron on the path is active."""
        return all(bool(gates[at]) for at in self.neurons)


Paths = Sequence[Path]


def layered_paths(layers: int, width: int) -> list[Path]:
    """All N^L paths of section A3.1: one neuron in each of L layers, all gated, joined by L − 1 weights."""
    found = []
    for units in itertools.product(range(width), repeat=layers):
        crossed = frozenset((layer, units[layer], units[layer + 1]) for layer in range(layers - 1))
        found.append(Path(crossed, tuple(enumerate(units))))
    return found


def paths_from(
    start: int, depth: int, width: int, *, skips: bool = False, gate_first: bool = False
) -> list[Path]:
    """All paths of lemma A2 from a neuron of layer 0 through L modules, with ``skips`` those of a resnet.

    Module l has weights W[l, before, after] and gates[l]: of the neuron it leads to or, with ``gate_first``, of
    the neuron it comes from, as in equation 2.
    """
    require(0 <= start < width, f"start is {start}, but neurons are numbered 0 to {width - 1}.")
    found = []
    for crossed in _subsets(depth) if skips else [tuple(range(depth))]:
        for units in itertools.product(range(width), repeat=len(crossed)):
            ends = (start, *units)
            steps = list(zip(crossed, ends, ends[1:], strict=False))
            gated = tuple((layer, before if gate_first else after) for layer, before, after in steps)
            found.append(Path(frozenset(steps), gated))
    return found


def printed_residual_paths(layers: int, width: int) -> list[Path]:
    """All residual paths (F, α) of section A3.3 as printed, with their |F| − 1 weights W[α_i, α_i+1, F_i]."""
    found = []
    for F in _subsets(layers):
        for units in itertools.product(range(width), repeat=len(F)):
            crossed = frozenset((F[i], units[i], units[i + 1]) for i in range(len(F) - 1))
            found.append(Path(crossed, tuple(zip(F, units, strict=True))))
    return found


def path_sum(paths: Paths, W: Array, gates: Gates) -> Array:
    """pw(A) or r_W(A): the sum of the weights of all active paths, for nets (…, layers, N, N)."""
    active = (path.weight(W) for path in paths if path.active(gates))
    return np.asarray(sum(active, start=np.zeros(W.shape[:-3])))


def mean(paths: Paths, gates: Gates) -> float:
    """E[r_W(A)] over weights of mean 0: the number of active paths that cross none."""
    return float(sum(path.active(gates) for path in paths if not path.weights))


def second_moment(paths: Paths, first: Gates, second: Gates, sigma: float) -> float:
    """E[r_W(A) r_W(B)], exactly, from A3: paths are orthogonal unless they cross the same weights."""
    counts: dict[frozenset[Weight], list[int]] = defaultdict(lambda: [0, 0])
    for path in paths:
        counts[path.weights][0] += path.active(first)
        counts[path.weights][1] += path.active(second)
    return sum(sigma ** (2 * len(crossed)) * a * b for crossed, (a, b) in counts.items())


def lemma_a1(first: Gates, second: Gates, sigma: float) -> float:
    """Lemma A1's right side, |A ∩ B| σ^(2(L−1)), where |A ∩ B| is a product over layers."""
    return float(_shared(first, second).prod()) * sigma ** (2 * (len(first) - 1))


def lemma_a3(first: Gates, second: Gates, sigma: float) -> float:
    """Lemma A3's right side, mended: Σ_F |A ∩ B|_F σ^(2|F|) over F ⊂ [L], that is ∏_l (1 + |A_l ∩ B_l| σ²)."""
    return float((1 + _shared(first, second) * sigma**2).prod())


def printed_lemma_a3(first: Gates, second: Gates, sigma: float) -> float:
    """Lemma A3's right side as printed, Σ_F |A ∩ B|_F σ^(2(|F|−1)), over F ⊂ [L] as its paths have it."""
    return lemma_a3(first, second, sigma) / sigma**2


def sign_weights(layers: int, width: int, sigma: float) -> Array:
    """Every net of weights ±σ, (nets, layers, N, N): a law of mean 0 and variance σ² whose expectations are sums."""
    count = layers * width**2
    require(
        count <= LARGEST,
        f"{layers} layers of {width}² weights have 2^{count} sign patterns; list at most {LARGEST} weights.",
    )
    signs = 1 - 2 * ((np.arange(2**count)[:, None] >> np.arange(count)) & 1)
    nets: Array = np.multiply(sigma, signs, dtype=np.float64).reshape(-1, layers, width, width)
    return nets


def listed_moments(paths: Paths, first: Gates, second: Gates, nets: Array) -> tuple[float, float]:
    """E[r_W(A)] and E[r_W(A) r_W(B)] as plain means over listed nets."""
    one, two = path_sum(paths, nets, first), path_sum(paths, nets, second)
    return float(one.mean()), float((one * two).mean())


def _subsets(depth: int) -> list[tuple[int, ...]]:
    return [F for size in range(depth + 1) for F in itertools.combinations(range(depth), size)]


def _shared(first: Gates, second: Gates) -> Array:
    """|A_l ∩ B_l| by layer."""
    return (first & second).sum(axis=1).astype(np.float64)
