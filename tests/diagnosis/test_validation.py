"""Diagnosis is right on cases whose truth is known, and stock models run through; see tools/validate_diagnosis.py.

Only the examinations that warn are made here. The held-out list was committed before any limit was set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from cases import development, held_out
from cases.lists import Control, PlantedCase, SpoiltCase, planted, spoilt
from cases.networks import Network, build
from cases.planting import ACCEPTED
from cases.spoiling import ACCEPTED as OF_DATA

from skiplab.diagnosis.diagnose import diagnose
from skiplab.diagnosis.examinations import EXAMINATIONS
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.report import Report

WARNING = [
    "layer_signals",
    "saturation",
    "branch_ratios",
    "gradient_norms",
    "singularities",
    "gradient_shattering",
]


def examined(network: Network, **how: object) -> Report:
    loss = {"criterion": network.criterion, "loss_fn": network.loss_fn}
    return diagnose(network.model, list(network.batches), **loss, **how)  # type: ignore[arg-type]


def troubles(network: Network) -> list[Finding]:
    report = examined(network, examinations=WARNING, budget=120)
    return [each for each in report.findings if each.severity != "info"]


def is_found(case: PlantedCase) -> bool:
    network, truth = planted(case)
    right = (each for each in troubles(network) if each.id in ACCEPTED[case.defect])
    return any(set(each.where) & truth.places for each in right)


def is_passed(case: Control) -> bool:
    return not troubles(build(case.network, case.seed))


def blamed(case: SpoiltCase) -> dict[str, tuple[str, ...]]:
    """Where the data are blamed, by finding."""
    report = examined(spoilt(case), examinations=["layer_signals"], budget=60)
    return {each.id: each.where for each in report.findings if each.id in OF_DATA}


def is_small(case: PlantedCase | Control) -> bool:
    return ":" not in case.network


@pytest.mark.parametrize("case", [*filter(is_small, development.PLANTED)], ids=lambda case: case.name)
def test_planted_defects_of_small_networks_are_found_in_their_layer(case: PlantedCase) -> None:
    assert is_found(case)


def test_small_healthy_networks_raise_no_warning() -> None:
    assert [case.name for case in filter(is_small, development.CONTROLS) if not is_passed(case)] == []


@pytest.mark.parametrize(("plain", "residual", "seed"), [*development.PAIRS, *held_out.PAIRS])
def test_a_deep_plain_network_is_sick_for_its_gradients_and_healthy_with_skips(
    plain: str, residual: str, seed: int
) -> None:
    sick = troubles(build(plain, seed))
    assert sick[0].severity == "severe"
    assert "vanishing-gradients" in {each.id for each in sick}
    assert not troubles(build(residual, seed))


# Where a rule about data is known to be wrong on the development list, and why.
WRONG = {
    "unequal-inputs of highway-8x40 (323)": "the wide column saturates the gates, and hardly moves the output then",
    "off-centre-inputs of convnet-bn-6 (309)": "batch normalisation takes five layers to tell samples apart",
}


def of_data(cases: Sequence[SpoiltCase]) -> list[Any]:
    """Cases as a test's parameters; those on which a rule is known to be wrong must stay so, or leave ``WRONG``."""
    return [
        pytest.param(
            case,
            id=case.name,
            marks=[pytest.mark.xfail(reason=WRONG[case.name], strict=True)] if case.name in WRONG else [],
        )
        for case in cases
    ]


@pytest.mark.parametrize("case", of_data(development.SPOILT))
def test_data_that_keep_a_network_from_training_are_named(case: SpoiltCase) -> None:
    assert OF_DATA[case.change] in blamed(case).get(case.change, ())


@pytest.mark.parametrize("case", of_data(development.HARMLESS))
def test_data_with_which_a_network_trains_are_not_blamed(case: SpoiltCase) -> None:
    assert not blamed(case)


@pytest.mark.slow
def test_of_held_out_data_no_more_is_missed_or_blamed_wrongly_than_is_told() -> None:
    missed = [case.name for case in held_out.SPOILT if case.change not in blamed(case)]
    wronged = [case.name for case in held_out.HARMLESS if blamed(case)]
    assert (len(held_out.SPOILT), len(held_out.HARMLESS)) == (18, 11)
    assert len(missed) <= 1, missed
    assert len(wronged) <= 3, wronged


@pytest.mark.slow
def test_held_out_defects_are_found_in_their_layer_in_nineteen_of_twenty() -> None:
    missed = [case.name for case in held_out.PLANTED if not is_found(case)]
    assert len(held_out.PLANTED) == 20
    assert len(missed) <= 1, missed


@pytest.mark.slow
def test_nineteen_of_twenty_held_out_healthy_networks_raise_no_warning() -> None:
    alarmed = [case.name for case in held_out.CONTROLS if not is_passed(case)]
    assert len(held_out.CONTROLS) == 20
    assert len(alarmed) <= 1, alarmed


@pytest.mark.slow
@pytest.mark.parametrize("name", held_out.STOCK)
def test_stock_models_run_through_and_what_is_not_measured_is_explained(name: str) -> None:
    report = examined(build(name, held_out.STOCK_SEED), budget=120, memory=8 * 2**30)
    measured, left = ({each.name for each in part} for part in (report.measured, report.unmeasured))
    assert measured | left == {each.name for each in EXAMINATIONS}
    assert {"layer_signals", "gradient_norms", "singularities"} <= measured
    assert all(len(each.why) > 10 for each in report.unmeasured)
    assert len(repr(report).splitlines()) <= 40
