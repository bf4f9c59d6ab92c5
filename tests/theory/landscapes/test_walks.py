from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from oracles.binary_landscapes import better_neighbours, walk
from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.landscapes import walks
from skiplab.theory.landscapes.binary_weights import losses
from skiplab.theory.landscapes.walks import describe, follow, survey

BITS = 10


def landscapes() -> dict[str, np.ndarray]:
    draw = numpy_generator(7, "landscapes")
    inputs, targets = draw.standard_normal((8, 2)), draw.standard_normal(8)
    return {
        "rugged": draw.standard_normal(2**BITS),
        "many ties": draw.integers(0, 6, size=2**BITS).astype(float),
        "ties up to rounding": draw.integers(0, 6, size=2**BITS) + 1e-14 * draw.standard_normal(2**BITS),
        "large": 1e6 * draw.integers(1, 6, size=2**BITS) + 1e-7 * draw.standard_normal(2**BITS),
        "plain net": losses("plain", inputs, targets, depth=2),
        "residual net": losses("residual", inputs, targets, depth=2),
    }


@pytest.mark.parametrize("name", landscapes())
@pytest.mark.parametrize("block_bits", [3, 15])
def test_surveys_and_walks_agree_with_walking_step_by_step(
    name: str, block_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(walks, "_BLOCK_BITS", block_bits)
    landscape, tolerance = landscapes()[name], 1e-10
    values = landscape.tolist()
    paths = [walk(values, start, tolerance) for start in range(2**BITS)]
    better, steps = survey(landscape, tolerance)
    lengths, ends = follow(steps)
    assert better.tolist() == [len(better_neighbours(values, i, tolerance)) for i in range(2**BITS)]
    assert steps.tolist() == [path[min(1, len(path) - 1)] for path in paths]
    assert lengths.tolist() == [len(path) - 1 for path in paths]
    assert ends.tolist() == [path[-1] for path in paths]

    found = describe(landscape, tolerance)
    basins = Counter(path[-1] for path in paths)
    assert found.minima == len(basins)
    assert found.basin_sizes.tolist() == sorted(basins.values(), reverse=True)
    assert found.mean_basin_size == pytest.approx(np.mean(list(basins.values())))
    assert found.mean_walk_length == pytest.approx(np.mean([len(path) - 1 for path in paths]))
    octaves = Counter(size.bit_length() - 1 for size in basins.values())
    assert found.basin_size_octaves.tolist() == [octaves[k] for k in range(max(octaves) + 1)]


def test_counting_ones_is_one_valley() -> None:
    """If the loss is the number of ones, a walk clears them one by one and everything leads to zero."""
    ones = np.array([bin(i).count("1") for i in range(2**BITS)], dtype=float)
    found = describe(ones)
    binomial = [1, 10, 45, 120, 210, 252, 210, 120, 45, 10, 1]
    assert found.better_neighbours.tolist() == binomial
    assert found.walk_lengths.tolist() == binomial
    assert found.basin_sizes.tolist() == [2**BITS]


def test_a_constant_landscape_is_all_minima() -> None:
    found = describe(np.full(2**BITS, 3.0))
    assert found.minima == found.configurations == 2**BITS
    assert found.mean_walk_length == 0
    assert found.basin_size_octaves.tolist() == [2**BITS]


def test_equally_good_neighbours_go_to_the_first_weight() -> None:
    better, steps = survey(np.array([1.0, 1.0, 1.0, 2.0]))
    assert better.tolist() == [0, 0, 0, 2]
    assert steps.tolist() == [0, 1, 2, 1]  # from 11, flipping the first weight gives 01


def test_wrong_landscapes_are_refused() -> None:
    with pytest.raises(Refused, match=r"losses have shape \(6,\).*2\*\*n"):
        describe(np.zeros(6))
    with pytest.raises(Refused, match=r"losses have shape \(4, 4\)"):
        describe(np.zeros((4, 4)))
    with pytest.raises(Refused, match="NaN or infinity"):
        describe(np.array([0.0, np.nan]))
    with pytest.raises(Refused, match="tolerance is -1"):
        describe(np.zeros(4), tolerance=-1)
