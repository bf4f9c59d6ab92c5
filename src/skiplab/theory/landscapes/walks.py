"""Neighbours, steepest walks and basins of a landscape over bit strings, for all of them at once.

A landscape is a loss for each of the 2**n strings of n bits; string and index are the same, with bit 0
the most significant, so that ``losses.reshape((2,) * n)`` has one axis a bit. Neighbours differ in one bit
(orhan2017, section 2.2).

**Ties.** Many configurations have the same loss (dead networks, permuted units) up to rounding. A
neighbour is *better* if its loss is lower by more than tolerance · max(1, loss), the loss being that of
the configuration asked about. A steepest walk moves to the best of the better neighbours; among
neighbours equally good within the same tolerance, to the one that flips the lowest-numbered bit. It ends
where no neighbour is better.

**The default tolerance**, 1e-10, is the middle of 1e-12 … 1e-8. Between these the number of local minima did
not change for any of 24 targets and four architectures: differences due to rounding stay below 1e-14, and
of 46 million pairs of neighbours at most a few hundred truly differ by less than 1e-8, none of which decided
a minimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from skiplab.checks import require

Floats = NDArray[np.float64]

_BLOCK_BITS = 15  # 2**15 losses and their scratch stay in a core's cache
_LARGEST_BITS = 30  # indices are int32


@dataclass(frozen=True)
class Landscape:
    """How rugged a landscape is; orhan2017, Figure 4 shows the three histograms."""

    better_neighbours: NDArray[np.int64]
    """How many configurations have 0, 1, …, n better neighbours."""
    walk_lengths: NDArray[np.int64]
    """From how many configurations the steepest walk takes 0, 1, … steps, up to the longest."""
    basin_sizes: NDArray[np.int64]
    """How many walks end in each local minimum, itself counted; largest first."""

    @property
    def configurations(self) -> int:
        """The number of configurations, 2**n."""
        return int(self.better_neighbours.sum())

    @property
    def minima(self) -> int:
        """The number of configurations without a better neighbour."""
        return int(self.better_neighbours[0])

    @property
    def mean_walk_length(self) -> float:
        """Steps of the steepest walk, averaged over all configurations it can start from."""
        return float(self.walk_lengths @ np.arange(len(self.walk_lengths)) / self.configurations)

    @property
    def mean_basin_size(self) -> float:
        """Configurations that lead to a local minimum, averaged over the minima."""
        return self.configurations / self.minima

    @property
    def basin_size_octaves(self) -> NDArray[np.int64]:
        """How many minima have a basin of 1, of 2–3, of 4–7, … configurations."""
        # frexp gives the exponent exactly, where a rounded logarithm could miss a power of two.
        return np.bincount(np.frexp(self.basin_sizes)[1] - 1)


def describe(losses: Floats, tolerance: float = 1e-10) -> Landscape:
    """Return the better-neighbour, walk-length and basin-size distributions of a landscape.

    >>> valley = describe(np.array([0.0, 1.0, 1.0, 2.0]))
    >>> valley.minima, valley.mean_walk_length, valley.basin_sizes
    (1, 1.0, array([4]))
    """
    better, steps = survey(losses, tolerance)
    lengths, ends = follow(steps)
    basins = np.bincount(ends)
    return Landscape(
        better_neighbours=np.bincount(better, minlength=bits_of(losses) + 1),
        walk_lengths=np.bincount(lengths),
        basin_sizes=np.sort(basins[basins > 0])[::-1],
    )


def bits_of(losses: Floats) -> int:
    """Return n for a landscape of 2**n losses; refuse any other length."""
    bits = max(losses.size, 1).bit_length() - 1
    require(
        losses.ndim == 1 and losses.size == 2**bits and 1 <= bits <= _LARGEST_BITS,
        f"losses have shape {losses.shape}; pass one loss for each of 2**n configurations, "
        f"n from 1 to {_LARGEST_BITS}.",
    )
    return bits


def survey(losses: Floats, tolerance: float = 1e-10) -> tuple[NDArray[np.uint8], NDArray[np.int32]]:
    """Return each configuration's number of better neighbours and where a steepest walk goes next.

    A local minimum has no better neighbour and is its own next configuration.
    """
    bits = bits_of(losses)
    require(tolerance >= 0, f"tolerance is {tolerance}; pass a number ≥ 0, such as 1e-10.")
    require(bool(np.isfinite(losses).all()), "losses contain NaN or infinity; pass finite numbers.")
    inner = min(bits, _BLOCK_BITS)
    blocks = losses.reshape(-1, 2**inner)
    better = np.zeros(losses.size, dtype=np.uint8)
    steps = np.arange(losses.size, dtype=np.int32)
    best_flip = np.empty(2**inner, dtype=np.int32)
    for number, block in enumerate(blocks):
        here = slice(number * 2**inner, (number + 1) * 2**inner)
        slack = tolerance * np.maximum(1.0, block)
        bar = block - slack  # what a neighbour must be below to count as better
        best_bar = bar.copy()  # the same for being better than the best so far
        best_flip[:] = 0
        for flip, neighbour in _neighbours(blocks, number, bits):
            better[here] += neighbour < bar
            best = neighbour < best_bar
            np.subtract(neighbour, slack, out=best_bar, where=best)
            best_flip[best] = flip
        steps[here] ^= best_flip
    return better, steps


def _neighbours(blocks: Floats, number: int, bits: int) -> Iterator[tuple[int, Floats]]:
    """Yield (mask of the flipped bit, losses with it flipped) for a block, lowest-numbered bit first."""
    size = blocks.shape[1]
    for bit in range(bits):
        mask = 1 << (bits - 1 - bit)
        if mask >= size:
            yield mask, blocks[number ^ (mask // size)]
        else:
            yield mask, blocks[number].reshape(-1, 2, mask)[:, ::-1].reshape(-1)


def follow(steps: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the length and the end of the walk from every configuration, given each one's next.

    Every round doubles how far the pointers reach, so walks of length m need about log₂ m rounds.
    The pointers must lead downhill, as those of ``survey`` do; a cycle would never end.
    """
    ends = steps.copy()
    lengths = (steps != np.arange(steps.size, dtype=steps.dtype)).astype(np.int32)
    while True:
        further = lengths[ends]
        if not further.any():
            return lengths, ends
        lengths += further
        ends = ends[ends]
