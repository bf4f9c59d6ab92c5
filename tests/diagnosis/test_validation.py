"""Diagnosis is right on cases whose truth is known, and stock models run through; see tools/validate_diagnosis.py.

Only the examinations that warn are made here. The held-out list was committed before any limit was set.
"""

from __future__ import annotations

import pytest
from cases import development, held_out
from cases.lists import ChangedCase, Control, PlantedCase, planted, spoilt
from cases.networks import Network, build
from cases.planting import ACCEPTED
from cases.spoiling import ACCEPTED as OF_DATA

from oracles.tools_by_path import tool
from skiplab.diagnosis.diagnose import diagnose
from skiplab.diagnosis.examinations import EXAMINATIONS
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.report import Report
from skiplab.diagnosis.thresholds import seen

TOOL = tool("validate_diagnosis")
RULES = TOOL.LIMIT_OF  # by finding about data the limit it rests on
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


def blamed(case: ChangedCase) -> dict[str, tuple[str, ...]]:
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


def is_right(case: ChangedCase) -> bool:
    """Whether data are blamed if the network does not train on them, at the right place, and not if it does."""
    found = blamed(case)
    return OF_DATA[case.change] in found.get(case.change, ()) if case.kind == "spoilt" else not found


def wrong_by_page() -> set[str]:
    """The held-out cases of changed data on which docs/diagnosis.md says that diagnosis is wrong."""
    rows = TOOL.rows_of(TOOL.PAGE.read_text())
    return {row["case"] for row in rows if row["kind"] in TOOL.OF_DATA and not row["right"]}


@pytest.mark.slow
def test_on_changed_data_of_the_development_list_a_rule_is_wrong_as_often_as_its_findings_tell() -> None:
    for name, limit in RULES.items():
        known, own = seen()["limits"][limit], [case for case in development.CHANGED if case.rule == name]
        wrong = [case.kind for case in own if (name in blamed(case)) != (case.kind == "spoilt")]
        assert (wrong.count("spoilt"), wrong.count("harmless")) == (known["missed"], known["blamed"])


@pytest.mark.slow
def test_rescaled_data_are_not_blamed() -> None:
    assert not [case.name for case in development.CHANGED if case.kind == "rescaled" and blamed(case)]


@pytest.mark.slow
def test_held_out_data_are_judged_as_the_page_tells() -> None:
    assert {case.name for case in held_out.CHANGED if not is_right(case)} == wrong_by_page()


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
