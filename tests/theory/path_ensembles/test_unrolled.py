"""Paths listed one by one in Python against bundles of arrays, and both against the network itself."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.path_ensembles.unrolled import (
    SharedWeights,
    bundles,
    equation_14,
    equation_15,
    lower_bound,
    mean_output,
    multiplicities,
    output_by_length,
    paths_of_length,
    placed,
    regrouped_output,
    standardised_inputs,
)

SHAPES = [(2, 4, 3, 2), (3, 3, 4, 3), (2, 4, 2, 1)]  # inputs, width, depth, unique weights


def net_of(shape: tuple[int, int, int, int], *, uniform: bool = True) -> tuple[SharedWeights, np.ndarray]:
    stream = numpy_generator("unrolled", *shape, int(uniform))
    places = placed(*shape, stream, shuffled="none" if uniform else "all")
    net = SharedWeights(places, stream.normal(size=shape[3]))
    return net, stream.normal(size=shape[0])


def listed(net: SharedWeights, active: np.ndarray) -> list[tuple[int, int, tuple[int, ...], bool]]:
    """Every path: its length, its input, its configuration and whether it is open."""
    found = []
    for size in range(net.depth):
        for others in itertools.combinations(range(1, net.depth), size):
            layers = (0, *others)
            for start in range(net.inputs):
                for units in itertools.product(range(net.width), repeat=len(layers)):
                    before = (start, *units)
                    crossed = tuple(
                        int(net.places[layer][before[k], units[k]]) for k, layer in enumerate(layers)
                    )
                    opened = all(active[layer, unit] for layer, unit in zip(layers, units, strict=True))
                    found.append((len(layers), start, crossed, opened))
    return found


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("uniform", [True, False])
def test_sums_over_open_paths_are_the_output(shape: tuple[int, int, int, int], uniform: bool) -> None:
    net, x = net_of(shape, uniform=uniform)
    output, active = net.forward(x)
    by_length = np.zeros(net.depth)
    for length, start, crossed, opened in listed(net, active):
        by_length[length - 1] += opened * x[start] * math.prod(net.weights[i] for i in crossed)
    np.testing.assert_allclose(output_by_length(net, x, active), by_length, atol=1e-12)
    assert by_length.sum() == pytest.approx(output, abs=1e-12)


@pytest.mark.parametrize("shape", SHAPES)
def test_paths_and_configurations_are_counted_as_listed(shape: tuple[int, int, int, int]) -> None:
    net, _ = net_of(shape, uniform=False)
    paths = listed(net, np.ones((net.depth, net.width), dtype=bool))
    by_length = Counter(length for length, *_ in paths)
    for r in range(1, net.depth + 1):
        assert by_length[r] == net.inputs * paths_of_length(net.depth, net.width, r)
        alpha = multiplicities(net, r)
        own = Counter((crossed, start) for length, start, crossed, _ in paths if length == r)
        for place, crossed in enumerate(itertools.product(range(net.unique), repeat=r)):
            assert [own[crossed, start] for start in range(net.inputs)] == alpha[place].tolist()
    assert sum(bundle.products.size for bundle in bundles(net)) == len(paths)


@pytest.mark.parametrize("shape", SHAPES)
def test_uniform_rows_attain_lemma_2s_lower_bound_and_all_inputs_become_one(
    shape: tuple[int, int, int, int],
) -> None:
    net, x = net_of(shape)
    for r in range(1, net.depth + 1):
        alpha = multiplicities(net, r)
        psi = net.inputs * paths_of_length(net.depth, net.width, r)
        assert (alpha.sum(axis=1) * net.unique**r == psi).all()
        assert (alpha**2).sum(axis=1) == pytest.approx(lower_bound(net, r), rel=1e-14)
        np.testing.assert_allclose(standardised_inputs(net, x, r), x.sum() / math.sqrt(len(x)), rtol=1e-12)


def test_rows_that_are_not_uniform_lie_between_both_bounds_of_their_own_count() -> None:
    net, _ = net_of((3, 3, 4, 3), uniform=False)
    for r in range(1, 5):
        alpha = multiplicities(net, r)
        squares, total = (alpha**2).sum(axis=1), alpha.sum(axis=1)
        assert (squares >= total**2 / net.inputs - 1e-9).all()
        assert (squares <= total**2).all()
        assert squares.mean() > lower_bound(net, r)


@pytest.mark.parametrize("shape", [(2, 4, 3, 2), (3, 3, 4, 3)])
def test_equations_11_14_and_15_are_the_mean_over_gates(shape: tuple[int, int, int, int]) -> None:
    net, x = net_of(shape)
    mean = mean_output(net, x, 0.3)
    for other in (regrouped_output, equation_14, equation_15):
        assert other(net, x, 0.3) == pytest.approx(mean, rel=1e-11)
    skewed, x = net_of(shape, uniform=False)
    mean = mean_output(skewed, x, 0.3)
    assert regrouped_output(skewed, x, 0.3) == pytest.approx(mean, rel=1e-11)
    assert abs(equation_14(skewed, x, 0.3) / mean - 1) > 1e-3


def test_the_mean_over_gates_is_that_of_random_gates() -> None:
    net, x = net_of((2, 4, 3, 2))
    stream, found = numpy_generator("gates"), []
    for _ in range(4000):
        opened = stream.random((3, 4)) < 0.6
        found.append(output_by_length(net, x, opened).sum())
    error = np.std(found) / math.sqrt(len(found))
    assert np.mean(found) == pytest.approx(mean_output(net, x, 0.6), abs=4 * error)


def test_a_shuffled_first_layer_keeps_lemma_1_and_leaves_the_lower_bound() -> None:
    """Configurations then start at some inputs more often than at others, so that lemma 2's bounds are apart."""
    stream = numpy_generator("first")
    net = SharedWeights(placed(3, 4, 3, 4, stream, shuffled="first"), stream.normal(size=4))
    for r in (1, 2, 3):
        alpha = multiplicities(net, r)
        assert (alpha.sum(axis=1) * 4**r == 3 * paths_of_length(3, 4, r)).all()
        ratios = (alpha**2).sum(axis=1) / lower_bound(net, r)
        assert 1 < ratios.max() <= 3
        assert ratios.min() >= 1


def test_equation_15_as_printed_lacks_a_factor() -> None:
    """Its right side, z making Σ ε_r² = 1 and summed from r = 1, written out for every configuration."""
    d, n, p, unique = 3, 4, 3, 2
    net, x = net_of((d, n, p, unique))
    rho, size = 0.5, math.sqrt(float((net.weights**2).mean()))
    raw = [math.comb(p - 1, r - 1) * (rho * n * size / math.sqrt(unique)) ** r for r in range(1, p + 1)]
    z = math.hypot(*raw)
    printed = 0.0
    for r in range(1, p + 1):
        products = map(math.prod, itertools.product(net.weights / size, repeat=r))
        own = sum(a * b for a, b in zip(standardised_inputs(net, x, r), products, strict=True))
        printed += z * (raw[r - 1] / z) / unique ** ((r - 1) / 2) * own
    assert printed * math.sqrt(d / unique) == pytest.approx(equation_14(net, x, rho), rel=1e-12)
    assert equation_15(net, x, rho) == pytest.approx(equation_14(net, x, rho), rel=1e-12)
    assert abs(printed) != pytest.approx(abs(equation_14(net, x, rho)), rel=0.1)


def test_rows_with_each_weight_at_least_once_are_even_for_as_many_weights_as_units() -> None:
    for unique in (4, 2):
        places = placed(3, 4, 3, unique, numpy_generator("rest"), shuffled="rest")
        counts = np.stack([(np.concatenate(places) == each).sum(axis=1) for each in range(unique)])
        assert counts.min() == 1
        assert counts.max() == (1 if unique == 4 else 3)


def test_widths_that_unique_weights_do_not_divide_are_refused() -> None:
    with pytest.raises(Refused, match="width is 4, but lemma 1 needs a multiple of the 3 unique weights"):
        placed(2, 4, 2, 3, numpy_generator("refused"))
    net, x = net_of((3, 3, 4, 3))
    wide = SharedWeights(placed(3, 6, 4, 3, numpy_generator("wide")), net.weights)
    with pytest.raises(Refused, match="list at most 16 gates"):
        mean_output(wide, x, 0.5)
