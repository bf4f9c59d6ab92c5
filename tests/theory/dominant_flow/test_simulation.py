"""The trivial case: draws of single rows against whole matrices, closed forms and the paper's formulas."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

from oracles.dominant_flow import whole_matrices
from skiplab.checks import Refused
from skiplab.randomness import numpy_generator, torch_generator
from skiplab.theory.dominant_flow.simulation import Simulated, integrated_share, simulated_share
from skiplab.theory.dominant_flow.trivial_case import (
    TrivialCase,
    deviation_ratio,
    expected_share,
    gate_variance,
)

BASE = TrivialCase()
STRONG = TrivialCase(epsilon=1.0, sigma_a=0.1)  # where the formulas differ
STRONG_OPEN = dataclasses.replace(STRONG, p=1.0)
both = pytest.mark.parametrize("kind", ["residual", "plain"])
ways = pytest.mark.parametrize("share", [simulated_share, integrated_share])


def drawn(
    case: TrivialCase, kind: str = "residual", draws: int = 100_000, share: Any = integrated_share
) -> Simulated:
    found: Simulated = share(case, kind, draws=draws, generator=torch_generator("draws"))
    return found


def assert_within(found: Simulated, expected: float, errors: float = 4.0) -> None:
    assert found.value == pytest.approx(expected, abs=errors * found.stderr + 1e-12)


@ways
@both
@pytest.mark.parametrize(
    "case", [STRONG, TrivialCase(n=4, epsilon=2.0, depth=3, layer=0, p=0.6, sigma_a=0.5)]
)
def test_single_rows_have_the_law_of_whole_matrices(case: TrivialCase, kind: str, share: Any) -> None:
    shares = whole_matrices(case, kind, 3_000, numpy_generator("matrices"))
    found = drawn(case, kind, share=share)
    error = math.hypot(shares.std() / math.sqrt(len(shares)), found.stderr)
    assert error < 0.01
    assert found.value == pytest.approx(shares.mean(), abs=4 * error)


@ways
@pytest.mark.parametrize("p", [0.0, 0.5, 0.9, 1.0])
def test_closed_forms(p: float, share: Any) -> None:
    # Two units, one layer: the other's gate is shut, or both are open and equally large.
    case = TrivialCase(n=2, depth=1, layer=0, p=p)
    assert_within(drawn(case, "plain", share=share), p * (1 - p) + p**2 / 2)
    # No other unit, or none that is connected: what matters is whether the path is open.
    for alone in (TrivialCase(n=1, p=p), TrivialCase(epsilon=0.0, p=p)):
        assert_within(drawn(alone, share=share), p**5)
        assert expected_share(alone) == pytest.approx(p**5)


@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
def test_an_open_path(p: float) -> None:
    def given_open(case: TrivialCase, kind: str) -> Simulated:
        return simulated_share(case, kind, generator=torch_generator("draws"), open_path=True)

    # Two units, one layer: the other's gate is shut, or both are equally large.
    assert_within(given_open(TrivialCase(n=2, depth=1, layer=0, p=p), "plain"), (1 - p) + p / 2)
    assert given_open(TrivialCase(n=1, p=p), "residual").value == 1
    if p == 1:
        assert given_open(STRONG_OPEN, "residual") == drawn(STRONG_OPEN, share=simulated_share)


def test_gates_make_a_mixture_whose_variance_sums_powers_of_p() -> None:
    """docs/errata.md: eq 10's C_ij has the variance Σ p^k σ_A², not Σ p^2k σ_A²."""
    stream = numpy_generator("mixture")
    gates = stream.random((400_000, BASE.steps)) < BASE.p
    kept = np.cumprod(gates, axis=1)  # A^(m) passes if gates m to L are open: so counted from the last layer
    entries = (kept * stream.normal(0, BASE.sigma_a, gates.shape)).sum(axis=1)
    assert entries.var() / BASE.sigma_a**2 == pytest.approx(gate_variance(BASE, "powers"), rel=0.02)
    assert gate_variance(BASE, "squares") < 0.8 * gate_variance(BASE, "powers")


@both
def test_the_two_ways_agree_and_integrating_is_less_noisy(kind: str) -> None:
    counted, integrated = drawn(STRONG, kind, share=simulated_share), drawn(STRONG, kind)
    assert counted.value == pytest.approx(
        integrated.value, abs=4 * math.hypot(counted.stderr, integrated.stderr)
    )
    assert integrated.stderr < counted.stderr


@both
@ways
def test_the_scales_of_the_last_gradients_and_of_plain_weights_cancel(kind: str, share: Any) -> None:
    base = drawn(STRONG, kind, 20_000, share)
    assert drawn(dataclasses.replace(STRONG, sigma_v=0.8), kind, 20_000, share) == base
    # By a power of two every float is scaled exactly.
    other = drawn(dataclasses.replace(STRONG, sigma_a=STRONG.sigma_a / 8), kind, 20_000, share)
    assert (other == base) == (kind == "plain")


def test_the_formulas_beside_the_simulation() -> None:
    """docs/errata.md: at ε = 1, σ_A = .1 the printed form is low and p′ high; Σ p^k is the nearest."""
    found = drawn(STRONG)
    assert found.value == pytest.approx(0.322, abs=0.002)
    forms = {form: expected_share(STRONG, form) for form in ("printed", "squares", "powers")}
    assert forms == pytest.approx({"printed": 0.304, "squares": 0.355, "powers": 0.331}, abs=5e-4)
    nearest = min(forms, key=lambda form: abs(forms[form] - found.value))
    assert nearest == "powers"


def test_at_the_base_all_formulas_are_the_open_paths() -> None:
    for form in ("printed", "squares", "powers"):
        assert expected_share(BASE, form) == pytest.approx(0.9**5, abs=5e-3)
    assert_within(drawn(BASE), expected_share(BASE, exact_phi=True), errors=5)


def test_small_p_leaves_the_formulas_low() -> None:
    case = dataclasses.replace(STRONG, p=0.5)
    found = drawn(case)
    assert found.value > expected_share(case, "powers") + 10 * found.stderr
    values = [drawn(dataclasses.replace(BASE, p=0.5), kind).value for kind in ("residual", "plain")]
    assert values == pytest.approx([0.061, 0.086], abs=0.002)


def test_plain_networks_depend_on_p_and_are_not_normal() -> None:
    values = [drawn(dataclasses.replace(BASE, p=p), "plain").value for p in (0.3, 1.0)]
    assert values == pytest.approx([0.067, 0.118], abs=0.002)
    normal = 2 / math.pi * math.atan(1 / math.sqrt(BASE.n - 1))
    assert normal == pytest.approx(0.144, abs=5e-4)


def test_gate_variances_are_the_papers_sums() -> None:
    case = TrivialCase(depth=7, layer=3, p=0.7)
    assert gate_variance(case, "printed") == 4
    assert gate_variance(case, "squares") == pytest.approx(0.49 * (1 - 0.7**8) / (1 - 0.49))
    assert gate_variance(case, "powers") == pytest.approx(0.7 + 0.49 + 0.343 + 0.2401)
    r = deviation_ratio(case, "printed")
    noise = (case.epsilon * case.sigma_a) ** 2
    assert r == pytest.approx(math.sqrt(1 + 4 * noise) / math.sqrt(4 * 19 * noise))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"layer": 10}, "layer is 10, but must lie below the depth of 10"),
        ({"p": 1.5}, r"p is 1\.5, but a probability lies between 0 and 1"),
        ({"n": 0}, "n is 0, but must be a whole number of at least 1"),
        ({"sigma_a": 0.0}, r"sigma_a is 0\.0, but must be a positive number"),
        ({"epsilon": -1.0}, r"epsilon is -1\.0, but must be at least 0"),
    ],
)
def test_senseless_cases_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        dataclasses.replace(BASE, **changes)


def test_unknown_kinds_and_forms_are_refused() -> None:
    with pytest.raises(Refused, match=r"kind 'residul' is unknown.*Did you mean residual"):
        drawn(BASE, "residul")
    with pytest.raises(Refused, match="form 'square' is unknown; choose one of printed, squares, powers"):
        expected_share(BASE, "square")
