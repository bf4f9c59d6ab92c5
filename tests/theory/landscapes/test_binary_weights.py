from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from oracles.binary_landscapes import loss_of, signs_of, toy_net
from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.theory.landscapes import binary_weights
from skiplab.theory.landscapes.binary_weights import ARCHITECTURES, losses
from skiplab.theory.landscapes.walks import describe, survey


def problem(depth: int, points: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    draw = numpy_generator(3, "landscape test")
    return draw.standard_normal((points, 2)), draw.standard_normal(points), draw.standard_normal((depth, 2))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("biased", [False, True])
def test_every_configuration_has_the_loss_of_its_network(architecture: str, biased: bool) -> None:
    inputs, targets, biases = problem(depth=2)
    fixed = biases if biased else None
    net = toy_net(architecture, 2, fixed)
    slow = [loss_of(net, signs_of(index, 10), inputs, targets) for index in range(2**10)]
    fast = losses(architecture, inputs, targets, fixed, depth=2)
    np.testing.assert_allclose(fast, slow, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("output_sign", [False, True])
def test_deep_networks_agree_at_sampled_configurations(architecture: str, output_sign: bool) -> None:
    inputs, targets, biases = problem(depth=4)
    bits = 18 + output_sign
    fast = losses(architecture, inputs, targets, biases, depth=4, output_sign=output_sign)
    assert fast.shape == (2**bits,)
    net = toy_net(architecture, 4, biases)
    for index in numpy_generator(4, "configurations").integers(2**bits, size=60).tolist():
        slow = loss_of(net, signs_of(index, bits), inputs, targets)
        assert fast[index] == pytest.approx(slow, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_an_output_bias_is_added_to_the_output(architecture: str) -> None:
    inputs, targets, biases = problem(depth=2)
    fast = losses(architecture, inputs, targets, biases, depth=2, output_bias=True)
    assert fast.shape == (2**11,)
    net = toy_net(architecture, 2, biases)
    for index in range(0, 2**11, 7):
        signs = signs_of(index, 11)
        slow = loss_of(net, signs[:-1], inputs, targets - signs[-1])
        assert fast[index] == pytest.approx(slow, rel=1e-13, abs=1e-13)


def test_the_size_of_a_block_does_not_change_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, targets, biases = problem(depth=3)
    whole = losses("hyper-residual", inputs, targets, biases, depth=3)
    monkeypatch.setattr(binary_weights, "_PREFIXES_AT_ONCE", 16)
    np.testing.assert_array_equal(losses("hyper-residual", inputs, targets, biases, depth=3), whole)


def swapped_units(landscape: np.ndarray, layer: int, depth: int) -> np.ndarray:
    """Swap the two units of a hidden layer: the rows of W_l, and the columns of what reads them."""
    axes = list(range(4 * depth + 2))
    first, after = 4 * (layer - 1), 4 * layer
    axes[first : first + 4] = [first + 2, first + 3, first, first + 1]
    readers = [after + 1, after] if layer == depth else [after + 1, after, after + 3, after + 2]
    axes[after : after + len(readers)] = readers
    return landscape.reshape((2,) * len(axes)).transpose(axes).reshape(-1)


@pytest.mark.parametrize("layer", [1, 2, 3])
def test_permuting_units_changes_no_loss_unless_skips_are_identities(layer: int) -> None:
    """Section 2.2: plain and path-residual keep the permutation symmetry, the others break it."""
    inputs, targets, _ = problem(depth=3)
    for architecture in ARCHITECTURES:
        landscape = losses(architecture, inputs, targets, depth=3)
        gap = np.abs(swapped_units(landscape, layer, depth=3) - landscape).max()
        if architecture in ("plain", "path-residual"):
            assert gap < 1e-12
        else:
            assert gap > 0.1


def test_biases_that_differ_break_the_plain_networks_permutation_symmetry() -> None:
    inputs, targets, biases = problem(depth=3)
    landscape = losses("plain", inputs, targets, biases, depth=3)
    assert np.abs(swapped_units(landscape, 2, depth=3) - landscape).max() > 0.1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("architecture", "least", "most"),
    [
        ("plain", 3_150_000, 3_268_352),
        ("path-residual", 373_000, 890_000),
        ("residual", 105_000, 260_000),
        ("hyper-residual", 40, 240),
    ],
)
def test_minima_of_a_full_target_do_not_depend_on_the_tolerance(
    architecture: str, least: int, most: int
) -> None:
    """Ties differ by rounding (< 1e-14) and true differences almost never by less than 1e-8."""
    draw = numpy_generator(1, "toy target")
    landscape = losses(architecture, draw.standard_normal((64, 2)), draw.standard_normal(64))
    counts = [survey(landscape, tolerance)[0] for tolerance in (1e-12, 1e-10, 1e-8)]
    minima = [int((count == 0).sum()) for count in counts]
    assert minima[0] == minima[1] == minima[2]
    assert least <= minima[0] <= most
    assert max(int((count != counts[1]).sum()) for count in counts) < 100


def test_a_full_landscape_needs_little_memory() -> None:
    draw = numpy_generator(1, "toy target")
    inputs, targets = draw.standard_normal((64, 2)), draw.standard_normal(64)
    tracemalloc.start()
    try:
        describe(losses("path-residual", inputs, targets))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.4e9


def test_wrong_arguments_are_refused() -> None:
    inputs, targets, biases = problem(depth=2)
    with pytest.raises(Refused, match=r"'residul' is unknown.*residual"):
        losses("residul", inputs, targets)
    with pytest.raises(Refused, match=r"inputs of shape \(2, 5\).*pass \(points, 2\)"):
        losses("plain", inputs.T, targets)
    with pytest.raises(Refused, match=r"biases have shape \(2, 2\).*\(3, 2\)"):
        losses("plain", inputs, targets, biases, depth=3)
    with pytest.raises(Refused, match="depth is 0"):
        losses("plain", inputs, targets, depth=0)
