"""Who is best and who is worst, by the rule by which a trial chooses whom to measure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.experiments.best_and_worst import BestAndWorst, best_and_worst, extremes_among
from skiplab.experiments.measured_networks import Measured, chosen, train_and_measure
from skiplab.experiments.networks import Member, Networks, Training
from skiplab.randomness import numpy_generator
from skiplab.reproduction.trial import Bench


def trained(curves: Sequence[Sequence[float]]) -> pd.DataFrame:
    """The table of one network per curve of accuracies."""
    rows = [
        {"member": member, "epoch": epoch, "quantity": "accuracy", "layer": 0, "value": accuracy}
        for member, curve in enumerate(curves)
        for epoch, accuracy in enumerate(curve, 1)
    ]
    count = len(curves)
    settings = Networks("digits", "plain", tuple(range(count)), (1.0,) * count, Training())
    return networks.table(settings, rows, [False] * count)


def seeds(groups: BestAndWorst) -> tuple[set[int], set[int]]:
    return set(groups.best["seed"]), set(groups.worst["seed"])


@pytest.mark.parametrize("first", [0, 20, 40])
def test_the_groups_are_the_networks_that_the_trial_chose(first: int, tmp_path: Path) -> None:
    """With 30 images and two epochs many networks tie, or nearly, also where a group ends."""
    training = Training(depth=2, width=3, images=30, epochs=3, batch_size=30)
    members = [Member(seed, 1.0) for seed in range(first, first + 14)]
    named = networks.together(training, "digits", "plain", members)
    frame = train_and_measure.function(Measured(named, "narrow", at=(0,), units=20, extremes=4), Bench())
    means = frame[frame["quantity"] == "accuracy"].groupby("seed")["value"].mean().round(6)
    assert means.nunique() < len(means), "no ties: this would not test what it is meant to"
    frame.to_parquet(tmp_path / "table.parquet")
    best, worst = seeds(best_and_worst(pd.read_parquet(tmp_path / "table.parquet"), 4))
    assert best | worst == set(frame[frame["quantity"] == "norm"]["seed"])
    assert (len(best), len(worst)) == (4, 4)
    assert means[list(best)].min() >= means[list(worst)].max()


def test_rounding_in_the_table_does_not_change_the_choice() -> None:
    """Sums of thirtieths tie often; in which order they come must not hang on digits the table does not keep."""
    generator = numpy_generator("ties")
    for _ in range(20):
        hits = generator.integers(0, 4, size=(5, 14))
        curves = [(hits[:, member] / 30).tolist() for member in range(14)]
        rows = [
            {"member": member, "quantity": "accuracy", "value": curve[epoch]}
            for epoch in range(5)
            for member, curve in enumerate(curves)
        ]
        measured = chosen(rows, 14, 4)
        assert seeds(best_and_worst(trained(curves), 4)) == (set(measured[:4]), set(measured[4:]))


def test_groups_are_by_accuracy_averaged_over_epochs() -> None:
    frame = trained([(0.1, 0.9), (0.6, 0.6), (0.2, 0.3), (0.3, 0.4)])
    assert seeds(best_and_worst(frame, 1)) == ({1}, {2})
    # Of four networks no more than two can be best without being worst as well.
    assert seeds(best_and_worst(frame, 3)) == ({0, 1}, {2, 3})


def test_no_network_is_both_best_and_worst() -> None:
    assert [extremes_among(runs, 3) for runs in (2, 5, 6, 100)] == [1, 2, 3, 3]


def test_networks_without_a_measurement_are_counted() -> None:
    groups = best_and_worst(trained([(0.1,), (0.2,), (0.3,), (0.4,)]), 2)
    assert not groups.have("norm")
    assert groups.missed(4) == ""
    assert groups.missed(3) == "1 of these networks diverged and was not measured"
    assert groups.missed(2) == "2 of these networks diverged and were not measured"
