"""Figures 2 and 3: made-up networks on which the paper is right or wrong, and real ones at smoke scale."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction import Results
from skiplab.reproduction.results import Part
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.littwin2017.figure_2 import STUDY as FIGURE_2
from skiplab.studies.littwin2017.figure_2.evidence import waving
from skiplab.studies.littwin2017.figure_3 import STUDY as FIGURE_3
from skiplab.studies.littwin2017.figure_3.evidence import knots
from skiplab.studies.littwin2017.resnet_evidence import Curves
from skiplab.studies.littwin2017.resnet_settings import NETWORKS, PLAIN
from skiplab.studies.littwin2017.resnets import MAIN, RATE_KEPT, SCALES_SPARED, train

DROP, END = 80, 164


def broken(epoch: float, before: float, after: float, knot: float = DROP) -> float:
    """A line that rises by ``before`` until the knot and by ``after`` from there to the end."""
    return before * min(epoch, knot) / knot + after * max(0.0, epoch - knot) / (END - knot)


RIGHT: dict[str, Any] = {
    "absorbed": (0.5, 2.0),  # ln of the norm: before the drop, and after it
    "absorbed_kept": (0.5, 0.5),
    "absorbed_plain": (0.1, 0.1),
    "scale": (0.3, -0.6),
    "scale_kept": (0.3, 0.2),
    "scale_spared": (0.3, -0.5),
    "waves": 15,
    "knot": 80.5,
    "error": (0.07, 0.3),
}


def made_up(runs: int = 10, **changes: Any) -> Results:
    """Curves as the paper has them, but for what is changed."""
    own = RIGHT | changes
    settings = dataclasses.replace(FIGURE_2.settings["paper"], runs=runs, controls=(PLAIN,))
    parts = []
    for place, data in enumerate(settings.data):
        rows = [
            row
            for seed in range(runs)
            for row in _networks(data, seed, own, own["error"][place], settings.layers_at)
        ]
        parts.append(Part(train.name, NETWORKS, pd.DataFrame(rows)))
    plain = [
        _row("cifar10", MAIN, seed, epoch, 0, "absorbed", np.exp(broken(epoch, *own["absorbed_plain"])))
        for seed in range(settings.control_runs)
        for epoch in range(122)
    ]
    return Results(settings, [*parts, Part(train.name, PLAIN, pd.DataFrame(plain))])


def _row(
    data: str, branch: str, seed: int, epoch: int, layer: int, quantity: str, value: float
) -> dict[str, Any]:
    place = {"data": data, "branch": branch, "seed": seed, "epoch": epoch, "layer": layer, "diverged": False}
    return place | {"quantity": quantity, "value": value * (1 + 0.002 * (seed % 5 - 2) * (epoch > 1))}


def _networks(
    data: str, seed: int, own: dict[str, Any], error: float, layers_at: tuple[int, ...]
) -> list[dict[str, Any]]:
    rows = []
    for epoch in range(END + 1):
        found = {
            "absorbed": 5 * np.exp(broken(epoch, *own["absorbed"])),
            "scale": 5.825 * np.exp(broken(epoch, *own["scale"], knot=own["knot"])),
            "weight": 5.0,
            "inverse": 1.0,
            "test_error": error,
        }
        rows += [_row(data, MAIN, seed, epoch, 0, name, value) for name, value in found.items()]
        if epoch in layers_at:
            # Layer 1 is the stem; of every block the second convolution lies above the first in the first ``waves``.
            pairs = [(1.0, 2.0) if block < own["waves"] else (2.0, 1.0) for block in range(15)]
            norms = [1.0, *(norm for pair in pairs for norm in pair)]
            for name in ("absorbed", "scale", "branch_share"):
                layers = norms[:15] if name == "branch_share" else norms
                rows += [
                    _row(data, MAIN, seed, epoch, place, name, norm) for place, norm in enumerate(layers, 1)
                ]
        if data == "cifar10" and seed < 5 and 80 <= epoch <= 121:
            kept = {"absorbed": 5 * np.exp(broken(epoch, *own["absorbed_kept"]))}
            kept["scale"] = 5.825 * np.exp(broken(epoch, *own["scale_kept"]))
            spared = 5.825 * np.exp(broken(epoch, *own["scale_spared"]))
            rows += [_row(data, RATE_KEPT, seed, epoch, 0, name, value) for name, value in kept.items()]
            rows.append(_row(data, SCALES_SPARED, seed, epoch, 0, "scale", spared))
    return rows


def verdicts(study: Study, results: Results) -> dict[str, str]:
    """One verdict per claim, the worst of its headline rows."""
    worst = {"holds": 0, "undecided": 1, "contradicted": 2}
    found: dict[str, str] = {}
    for row in judge(study, results, "paper"):
        if row.headline:
            found[row.claim] = max(found.get(row.claim, "holds"), row.verdict, key=worst.__getitem__)
    return found


@pytest.mark.parametrize("study", [FIGURE_2, FIGURE_3], ids=lambda study: study.id)
def test_on_networks_as_the_paper_has_them_every_claim_holds(study: Study) -> None:
    found = verdicts(study, made_up())
    assert found == {claim.id: "holds" for claim in study.claims}


@pytest.mark.parametrize(
    ("changes", "contradicted"),
    [
        (
            {"absorbed": (-0.5, -0.5), "absorbed_kept": (-0.5, -0.5)},
            {
                *("absorbed-norms-grow", "later-epochs-lie-higher", "growth-needs-skips"),
                *("faster-after-the-drop", "faster-because-of-the-drop"),
            },
        ),
        ({"absorbed": (1.0, 0.2)}, {"faster-after-the-drop", "faster-because-of-the-drop"}),
        ({"absorbed_kept": (0.5, 2.0)}, {"faster-because-of-the-drop"}),
        ({"absorbed_plain": (0.5, 2.0)}, {"growth-needs-skips"}),
        ({"waves": 8}, {"waving"}),
    ],
    ids=["norms fall", "slower", "rate is no cause", "plain grows too", "no waves"],
)
def test_other_norms_contradict_figure_2(changes: dict[str, Any], contradicted: set[str]) -> None:
    found = verdicts(FIGURE_2, made_up(**changes))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == contradicted


def test_waves_in_12_of_15_blocks_of_either_direction_are_enough() -> None:
    shares = {
        waves: [float(np.mean(each.samples[0])) for each in waving(made_up(5, waves=waves))]
        for waves in (12, 3, 11)
    }
    assert shares[12] == shares[3] == pytest.approx([1 / 15] * 2)
    assert shares[11] == pytest.approx([0.0] * 2)


@pytest.mark.parametrize(
    ("changes", "contradicted"),
    [
        (
            {"scale": (-0.3, -0.6)},
            {"coefficients-rise-before-the-drop"},
        ),
        (
            {"scale": (0.3, 0.1), "scale_kept": (0.3, 0.1)},
            {"coefficients-fall-after-the-drop", "the-drop-turns-them"},
        ),
        ({"knot": 95.0}, {"the-turn-is-at-the-drop"}),
        ({"absorbed": (0.5, -0.5)}, {"growth-moves-to-the-convolutions"}),
        ({"scale_kept": (0.3, -0.6)}, {"the-drop-turns-them"}),
        ({"scale_kept": (0.3, -0.3)}, {"the-drop-turns-them"}),
        ({"scale_spared": (0.3, 0.0)}, {"they-fall-without-decay"}),
    ],
    ids=[
        "no rise",
        "no fall",
        "late turn",
        "norms fall",
        "rate no cause",
        "rate half a cause",
        "decay is the cause",
    ],
)
def test_other_coefficients_contradict_figure_3(changes: dict[str, Any], contradicted: set[str]) -> None:
    found = verdicts(FIGURE_3, made_up(**changes))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == contradicted


@pytest.mark.parametrize("study", [FIGURE_2, FIGURE_3], ids=lambda study: study.id)
def test_networks_that_err_too_often_are_not_judged(study: Study) -> None:
    rows = [row for row in judge(study, made_up(error=(0.1, 0.4)), "paper") if row.headline]
    assert {row.verdict for row in rows} == {"undecided"}
    assert all("not the paper's networks" in row.detail for row in rows)
    # One bad set leaves the other's rows as they are.
    mixed = [row for row in judge(study, made_up(error=(0.07, 0.4)), "paper") if row.headline]
    assert {row.verdict for row in mixed if "CIFAR-100" in row.condition} == {"undecided"}
    assert {row.verdict for row in mixed if "CIFAR-100" not in row.condition} == {"holds"}


def test_the_knot_of_a_broken_line_is_found() -> None:
    epochs = tuple(range(41, 122))
    for knot in (60.0, 81.0, 100.0):
        values = np.array([[broken(epoch, 0.3, -0.6, knot) for epoch in epochs]])
        assert knots(Curves((0,), epochs, values), 41, 121).tolist() == [knot]


def test_the_mean_norm_of_coefficients_starts_at_5_825() -> None:
    """31 normalisations: 11 of 16 filters, 10 of 32, 10 of 64."""
    assert pytest.approx(5.825, abs=5e-4) == (11 * 16**0.5 + 10 * 32**0.5 + 10 * 64**0.5) / 31


@pytest.mark.parametrize("study", [FIGURE_2, FIGURE_3], ids=lambda study: study.id)
def test_smoke_runs_have_their_panels(study: Study, smoke_run: Callable[[Study], StudyRun]) -> None:
    figure: Any = study.figure(results_of(study, smoke_run(study)))
    _, over, _ = figure.axes
    labels = [text.get_text() for text in over.get_legend().get_texts()]
    assert labels == ["networks", "rate kept", "γ spared from decay", "no skips"]


@pytest.mark.parametrize("study", [FIGURE_2, FIGURE_3], ids=lambda study: study.id)
def test_figures_have_a_row_per_data_set_and_controls_in_one(study: Study) -> None:
    figure: Any = study.figure(made_up(5))
    assert len(figure.axes) == 6
    labels = [[text.get_text() for text in figure.axes[place].get_legend().get_texts()] for place in (1, 4)]
    assert "rate kept" in labels[0]
    assert labels[1] == ["networks"]


@pytest.mark.parametrize("study", [FIGURE_2, FIGURE_3], ids=lambda study: study.id)
def test_without_the_data_set_of_the_controls_the_rest_is_judged(study: Study) -> None:
    whole = made_up()
    alone = dataclasses.replace(whole.settings, data=("cifar100-fine",))
    found = verdicts(study, Results(alone, whole.parts[1:2]))
    papers = {claim.id for claim in study.claims if claim.source != "ours"}
    assert {found[claim] for claim in papers} == {"holds"}
