"""Skip matrices from the least to the most orthogonal one, and evidence that follows this order."""

from __future__ import annotations

import dataclasses

import numpy as np

from skiplab.experiments import networks
from skiplab.experiments.networks import Member, Training
from skiplab.experiments.skip_networks import (
    FoldedSettings,
    TauSettings,
    decays_no_more,
    shown,
    skip_of,
    train_folded,
    train_taus,
    trend,
)
from skiplab.reproduction.results import Part, Results

FOLDED = FoldedSettings(data=("digits",), runs=2, gains=(1.0,), folded=(1, 4))
TAUS = TauSettings(data=("digits",), runs=2, gains=(1.0,), taus=(0.0, 0.2, 0.4))


def part(stage: str, skip: str, accuracy: float, slope: float) -> Part:
    """Two networks of five layers with one accuracy; log norms rise by the slope from layer to layer."""
    members = [Member(seed + 500 * (stage == "search"), 1.0) for seed in range(2)]
    named = networks.together(Training(epochs=1), "digits", "residual", members, skip=skip)
    rows = []
    for member in range(2):
        rows.append({"member": member, "epoch": 1, "quantity": "accuracy", "layer": 0, "value": accuracy})
        rows += [
            {"member": member, "epoch": 0, "quantity": "gradient_norm", "layer": layer, "value": norm}
            for layer, norm in enumerate(np.exp(slope * np.arange(5)).tolist(), 1)
        ]
    return Part(networks.train.name, stage, networks.table(named, rows, [False, False]))


def results_of(settings: FoldedSettings | TauSettings, slopes: tuple[float, ...]) -> Results:
    """The least orthogonal matrix has accuracy .1, the next .2 and so on."""
    parts = [
        part(stage, model.skip, place / 10, slope)
        for place, (model, slope) in enumerate(zip(settings.skips, slopes, strict=True), 1)
        for stage in ("decide", "search")
    ]
    return Results(settings, parts)


def test_matrices_go_from_the_least_to_the_most_orthogonal() -> None:
    assert [model.skip for model in FOLDED.skips] == ["folded-1", "folded-4", "orthogonal"]
    assert [model.skip for model in TAUS.skips] == ["tau-0.4", "tau-0.2", "tau-0"]
    assert list(shown(TAUS)) == ["tau-0", "tau-0.2", "tau-0.4"]
    assert skip_of(0.05) == "tau-0.05"


def test_every_matrix_is_trained_and_identity_beside_the_folded_ones() -> None:
    folded, taus = (
        list(dict.fromkeys(call.settings.skip for call in stage(Results(settings))))
        for stage, settings in ((train_folded, FOLDED), (train_taus, TAUS))
    )
    assert folded == ["folded-1", "folded-4", "orthogonal", "identity"]
    assert taus == ["tau-0.4", "tau-0.2", "tau-0"]
    more = dataclasses.replace(TAUS, norms_at=(0, 3))
    assert [call.settings.norms_at for call in train_taus(Results(more))[:2]] == [(0, 3), ()]


def test_trends_and_decays_compare_with_the_most_orthogonal_one() -> None:
    results = results_of(FOLDED, (1.0, 0.5, 0.25))
    rising = next(iter(trend(results)))
    np.testing.assert_allclose(rising.samples, [[0.1] * 2, [0.2] * 2, [0.3] * 2], atol=1e-6)
    no_more = [row for row in decays_no_more(results_of(TAUS, (1.0, 0.5, 0.25))) if row.headline]
    assert [row.condition for row in no_more] == [
        f"{skip}, digits, common gain 1" for skip in ("tau-0.2", "tau-0.4")
    ]
    np.testing.assert_allclose(no_more[1].samples, [[1.0] * 2, [4.0] * 2], atol=1e-5)
