"""A residual network written as the sum over its paths: littwin2017, eqs 8–15 and lemmas 1, 2, on networks small
enough to list every path.

A network has d inputs and p layers of n units, N_1 = R(W_1ᵀx) and N_l = R(W_lᵀN_{l−1}) + N_{l−1} (eq 8), and its
output Y is the sum of the last layer. A path of length r crosses W_1 and r − 1 of W_2 … W_p, so that there are
C(p − 1, r − 1) nʳ from every input. All weights are Λ different numbers; which of them a path crosses, in which
order, is its configuration (i_1 … i_r), one of Λʳ.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skiplab.checks import one_of, require, whole_numbers
from skiplab.theory.path_ensembles.multipliers import beta_of

Array = NDArray[np.float64]
Places = NDArray[np.int64]
MOST_GATES = 16  # 65,536 patterns of gates are listed


@dataclass(frozen=True)
class SharedWeights:
    """A network of eq 8: per layer which of the Λ unique weights stands where (before, after), and the weights."""

    places: tuple[Places, ...]
    weights: Array  # (Λ,)

    @property
    def inputs(self) -> int:
        """d."""
        return len(self.places[0])

    @property
    def width(self) -> int:
        """n."""
        return int(self.places[0].shape[1])

    @property
    def depth(self) -> int:
        """p."""
        return len(self.places)

    @property
    def unique(self) -> int:
        """Λ."""
        return len(self.weights)

    def forward(self, x: Array) -> tuple[float, NDArray[np.bool_]]:
        """The output Y for an input (d,), and which units of every layer are active, (p, n)."""
        at, active = np.asarray(x), []
        for layer, places in enumerate(self.places):
            before = at @ self.weights[places]
            active.append(before > 0)
            at = np.maximum(before, 0) + (at if layer else 0)
        return float(at.sum()), np.stack(active)


@dataclass(frozen=True)
class Bundle:
    """All paths that cross the same layers; arrays have one axis for the input and one for each unit crossed."""

    length: int
    configurations: Places  # i_1 … i_r as one number in base Λ
    products: Array  # w_{i_1} ⋯ w_{i_r}
    open: NDArray[np.bool_]  # whether all units on the path are active


def placed(
    inputs: int,
    width: int,
    depth: int,
    unique: int,
    generator: np.random.Generator,
    *,
    shuffled: str = "none",
) -> tuple[Places, ...]:
    """Where unique weights stand: every row (the weights out of one unit) holds each n/Λ times, in random order.

    That is assumption A3 with "close to evenly distributed" taken as evenly. A ``shuffled`` matrix, "first" or "all",
    is in random order as a whole: each weight is as frequent in it, but more or less often in one row. With "rest" a
    row holds each weight once, which is A3 as the paper puts it for practice, and is drawn at random for the rest.
    """
    whole_numbers(inputs=inputs, width=width, depth=depth, unique=unique)
    one_of("shuffled", shuffled, ("none", "first", "all", "rest"))
    require(
        width % unique == 0, f"width is {width}, but lemma 1 needs a multiple of the {unique} unique weights."
    )
    row, found = np.repeat(np.arange(unique), width // unique), []
    for layer in range(depth):
        rows = np.tile(row, (inputs if layer == 0 else width, 1))
        if shuffled == "all" or (shuffled == "first" and layer == 0):
            found.append(generator.permutation(rows.ravel()).reshape(rows.shape))
        elif shuffled == "rest":
            rows[:, :unique] = np.arange(unique)
            rows[:, unique:] = generator.integers(unique, size=(len(rows), width - unique))
            found.append(generator.permuted(rows, axis=1))
        else:
            found.append(generator.permuted(rows, axis=1))
    return tuple(found)


def bundles(net: SharedWeights, active: NDArray[np.bool_] | None = None) -> Iterator[Bundle]:
    """Every path of a network, bundled by the layers it crosses; all gates are open where none are given."""
    gates = np.ones((net.depth, net.width), dtype=bool) if active is None else active
    for size in range(net.depth):
        for others in itertools.combinations(range(1, net.depth), size):
            codes, products = net.places[0], net.weights[net.places[0]]
            is_open = np.broadcast_to(gates[0], codes.shape)
            for layer in others:
                places = net.places[layer]
                codes = codes[..., None] * net.unique + places
                products = products[..., None] * net.weights[places]
                is_open = is_open[..., None] & gates[layer]
            yield Bundle(size + 1, codes, products, is_open)


def paths_of_length(depth: int, width: int, length: int) -> int:
    """γ_r = C(p − 1, r − 1) nʳ, the paths of a length from one input."""
    return math.comb(depth - 1, length - 1) * width**length


def output_by_length(net: SharedWeights, x: Array, active: NDArray[np.bool_] | None = None) -> Array:
    """Eq 9's sums over the open paths of each length r = 1 … p, shape (p,); Y is their sum."""
    found = np.zeros(net.depth)
    for bundle in bundles(net, active):
        inputs = x.reshape(-1, *[1] * bundle.length)
        found[bundle.length - 1] += (inputs * bundle.products * bundle.open).sum()
    return found


def multiplicities(net: SharedWeights, length: int) -> Places:
    """How often each configuration of a length appears, by input: α of lemma 2's proof, shape (Λʳ, d).

    Lemma 1: rows sum to ψ_r/Λʳ = dγ_r/Λʳ.
    """
    d, kinds = net.inputs, net.unique**length
    found = np.zeros(kinds * d, dtype=np.int64)
    for bundle in bundles(net):
        if bundle.length == length:
            start = np.arange(d).reshape(-1, *[1] * length)
            found += np.bincount((bundle.configurations * d + start).ravel(), minlength=kinds * d)
    return found.reshape(kinds, d)


def products_of(weights: Array, length: int) -> Array:
    """w_{i_1} ⋯ w_{i_r} of every configuration, in the order of ``multiplicities``, shape (Λʳ,)."""
    found = np.ones(1)
    for _ in range(length):
        found = np.multiply.outer(found, weights).ravel()
    return found


def lower_bound(net: SharedWeights, length: int) -> float:
    """Lemma 2's lower bound of E[ξ²], (ψ_r/Λʳ)²/d."""
    psi = net.inputs * paths_of_length(net.depth, net.width, length)
    return (psi / net.unique**length) ** 2 / net.inputs


def mean_output(net: SharedWeights, x: Array, rho: float) -> float:
    """E_A[Y] with every unit's gate open with probability ρ by itself, from all patterns of gates."""
    p, n = net.depth, net.width
    require(p * n <= MOST_GATES, f"{p} × {n} gates have 2^{p * n} patterns; list at most {MOST_GATES} gates.")
    gates = (np.arange(2 ** (p * n))[:, None] >> np.arange(p * n)) & 1
    chances = np.where(gates, rho, 1 - rho).prod(axis=1)
    at = np.broadcast_to(x, (len(gates), net.inputs))
    for layer, opened in enumerate(gates.reshape(-1, p, n).swapaxes(0, 1)):
        at = opened * (at @ net.weights[net.places[layer]]) + (at if layer else 0)
    return float(chances @ at.sum(axis=1))


def regrouped_output(net: SharedWeights, x: Array, rho: float) -> float:
    """Eq 11's right side: Σ_r ρʳ Σ over configurations of ξ_{i_1 … i_r} w_{i_1} ⋯ w_{i_r}."""
    return sum(
        rho**r * float((multiplicities(net, r) @ x) @ products_of(net.weights, r))
        for r in range(1, net.depth + 1)
    )


def standardised_inputs(net: SharedWeights, x: Array, length: int) -> Array:
    """x̃ of eq 12 for every configuration, ξ over its standard deviation ‖α‖, shape (Λʳ,); 0 if it has no path."""
    alpha = multiplicities(net, length)
    sizes = np.sqrt((alpha**2).sum(axis=1))
    return np.asarray((alpha @ x) / np.where(sizes > 0, sizes, 1))


def equation_14(net: SharedWeights, x: Array, rho: float) -> float:
    """Ŷ of eq 14, where lemma 2's lower bound stands for E[ξ²]."""
    found = 0.0
    for r in range(1, net.depth + 1):
        psi = net.inputs * paths_of_length(net.depth, net.width, r)
        terms = standardised_inputs(net, x, r) @ products_of(net.weights, r)
        found += (rho / net.unique) ** r * psi / math.sqrt(net.inputs) * float(terms)
    return found


def equation_15(net: SharedWeights, x: Array, rho: float) -> float:
    """Ŷ of eq 15 by β and ε_r of eq 17, summed from r = 1: its z carries √(d/Λ) beside the normalisation of ε_r."""
    size = math.sqrt(float((net.weights**2).mean()))  # C of A4
    beta = beta_of(rho, net.width, size, net.unique)
    raw = np.array([math.comb(net.depth - 1, r - 1) * beta**r for r in range(1, net.depth + 1)])
    z = math.sqrt(float((raw**2).sum()))
    found = 0.0
    for r, epsilon in enumerate(raw / z, 1):
        terms = standardised_inputs(net, x, r) @ products_of(net.weights / size, r)
        found += float(epsilon) * net.unique ** (-(r - 1) / 2) * float(terms)
    return z * math.sqrt(net.inputs / net.unique) * found
