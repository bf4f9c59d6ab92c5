"""The trial that trains and measures, against the measurements made by hand."""

from __future__ import annotations

import dataclasses
import random
import shutil
import time
import warnings
from pathlib import Path

import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from skiplab.checks import Refused, TimeIsUp
from skiplab.curvature.spectrum_methods import Lanczos
from skiplab.experiments import building
from skiplab.experiments import networks as earlier
from skiplab.experiments.measured_networks import Measured, chosen, train_and_measure
from skiplab.experiments.measuring import _Notebook
from skiplab.experiments.networks import Member, Training
from skiplab.files import DamageFound
from skiplab.measurements.hessian_spectrum import hessian_spectrum
from skiplab.measurements.singularities import singularities
from skiplab.reproduction.trial import Bench

TRAINING = Training(depth=3, width=4, images=60, epochs=2, batch_size=30)


def settings(model: str = "plain", members: int = 3, **more: object) -> Measured:
    named = earlier.together(TRAINING, "digits", model, [Member(seed, 1.0) for seed in range(members)])
    options: dict[str, object] = {"at": (0, 2), "exact": 40, "units": 40, "test": True} | more
    return Measured(named, "narrow", **options)  # type: ignore[arg-type]


def values(frame: pd.DataFrame, quantity: str, epoch: int) -> list[float]:
    rows = frame[(frame["quantity"] == quantity) & (frame["epoch"] == epoch) & (frame["layer"] == 0)]
    return rows.sort_values("seed")["value"].tolist()


@pytest.mark.parametrize("model", ["plain", "residual", "hyper-residual"])
def test_rows_are_what_the_measurements_say_of_the_networks_at_that_epoch(model: str) -> None:
    measured = settings(model, limits=40, probes=2, steps=5)
    frame = train_and_measure.function(measured, Bench())
    for epoch in (0, 2):
        common = dataclasses.replace(TRAINING, epochs=epoch)
        trained = earlier.train_members(dataclasses.replace(measured.networks, training=common), Bench())
        ensemble = trained.ensemble.selected(range(3), dtype=torch.float64)
        batch = (trained.samples.inputs[:40].double(), trained.samples.labels[:40])
        exact = hessian_spectrum(ensemble, batch, criterion=F.cross_entropy, method="exact")
        expected = {
            "degenerate": exact.degenerate.value,
            "negative": exact.negative.value,
            "largest": exact.largest,
        }
        for name, tensor in expected.items():
            assert values(frame, name, epoch) == pytest.approx(tensor.tolist(), rel=1e-6)
        units = singularities(ensemble, batch)
        for name in ("norm", "overlap", "dependence", "zero"):
            assert values(frame, name, epoch) == pytest.approx(getattr(units, name).tolist(), rel=1e-6)
        test = building.samples_of("digits", 60, None, "cpu", "test")
        right = (trained.ensemble(test.inputs).argmax(-1) == test.labels).double().mean(1)
        assert values(frame, "test_accuracy", epoch) == pytest.approx(right.tolist(), rel=1e-6)
        lanczos = hessian_spectrum(
            ensemble, batch, criterion=F.cross_entropy, method=Lanczos(probes=2, steps=5, max_steps=5)
        )
        assert values(frame, "lanczos_negative_high", epoch) == pytest.approx(
            lanczos.negative.high.tolist(), rel=1e-6
        )
        assert len(values(frame, "mixture_degenerate", epoch)) == 3
    assert set(frame["part"]) == {"narrow"}


def test_only_the_best_and_the_worst_are_measured_where_extremes_are_asked_for() -> None:
    frame = train_and_measure.function(settings(members=6, extremes=1, test=False), Bench())
    accuracy = frame[frame["quantity"] == "accuracy"].groupby("seed")["value"].mean()
    spectra = frame[(frame["quantity"] == "degenerate") & (frame["epoch"] == 2)]
    assert set(spectra["seed"]) == {accuracy.idxmax(), accuracy.idxmin()}


def test_the_choice_is_by_the_mean_over_epochs() -> None:
    rows = [
        {"member": member, "quantity": "accuracy", "value": value}
        for member, both in enumerate([(0.1, 0.9), (0.6, 0.6), (0.2, 0.3), (0.3, 0.4)])
        for value in both
    ]
    assert chosen(rows, 4, 1) == [1, 2]
    assert chosen(rows, 4, 2) == [1, 0, 3, 2]
    assert chosen(rows, 4, 0) == [0, 1, 2, 3]


def test_eigenvalues_are_listed_for_the_first_network_only() -> None:
    frame = train_and_measure.function(settings(eigenvalues_at=(2,), units=0, test=False), Bench())
    listed = frame[frame["quantity"] == "eigenvalue"]
    count = 64 * 4 + 4 + 2 * (4 * 4 + 4) + 10 * 5
    assert set(listed["epoch"]) == {2}
    assert set(listed["seed"]) == {0}
    assert sorted(listed["layer"]) == list(range(count))
    share = (listed["value"].abs() < 1e-3).mean()
    assert share == pytest.approx(values(frame, "degenerate", 2)[0], abs=1e-4)


def test_an_interrupted_trial_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = train_and_measure.function(settings(), Bench())
    with pytest.raises(TimeIsUp):
        train_and_measure.function(settings(), Bench(checkpoints=tmp_path, deadline=time.time() - 1))
    told: list[str] = []

    def stop_after_two(done: float, text: str) -> None:
        told.append(text)
        if len([word for word in told if word.startswith("spectrum")]) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_and_measure.function(settings(), Bench(checkpoints=tmp_path, tell=stop_after_two))
    again: list[str] = []
    tell = lambda done, text: again.append(text)  # noqa: E731
    frame = train_and_measure.function(settings(), Bench(checkpoints=tmp_path, tell=tell))
    pd.testing.assert_frame_equal(frame, whole)
    measured = [text for text in told[:-1] if text.startswith("spectrum")]
    assert len(measured) == 2
    assert not set(measured) & set(again)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> tuple[pd.DataFrame, Path]:
    """A trial's table, and what it leaves when stopped in training, and again after two measurements."""
    folder = tmp_path_factory.mktemp("stopped")
    told: list[str] = []

    def stop_after_two(done: float, text: str) -> None:
        told.append(text)
        if len([word for word in told if word.startswith("spectrum")]) == 3:
            raise KeyboardInterrupt

    with pytest.raises(TimeIsUp):
        train_and_measure.function(settings(), Bench(checkpoints=folder, deadline=time.time() - 1))
    with pytest.raises(KeyboardInterrupt):
        train_and_measure.function(settings(), Bench(checkpoints=folder, tell=stop_after_two))
    return train_and_measure.function(settings(), Bench()), folder


@pytest.mark.parametrize("kind", ["a bit", "cut", "empty", "missing"])
@pytest.mark.parametrize("file", ["training.safetensors", "epoch-0.safetensors", "measured.json"])
def test_a_damaged_checkpoint_costs_time_and_changes_no_number(
    stopped: tuple[pd.DataFrame, Path], tmp_path: Path, file: str, kind: str
) -> None:
    whole, left = stopped
    folder = tmp_path / "key"
    shutil.copytree(left, folder)
    content = bytearray((folder / file).read_bytes())
    content[len(content) // 2] ^= 1
    cut = {"a bit": content, "cut": content[: len(content) // 3], "empty": b"", "missing": None}[kind]
    (folder / file).unlink()
    if cut is not None:
        (folder / file).write_bytes(cut)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        frame = train_and_measure.function(settings(), Bench(checkpoints=folder))
    pd.testing.assert_frame_equal(frame, whole, check_exact=True)
    # A checkpoint that is not there is an ordinary thing, but not the networks of an epoch that training has passed.
    silent = kind == "missing" and not file.startswith("epoch")
    assert [each.category for each in said] == ([] if silent else [DamageFound])
    assert silent or file in str(said[0].message)
    assert silent or len(list(tmp_path.rglob(".damaged-*"))) == 1


def test_no_flipped_bit_of_the_notebook_is_read_as_another_number(tmp_path: Path) -> None:
    path = tmp_path / "measured.json"
    _Notebook(path).write("piece", [{"member": 0, "value": 0.1 + 0.2}, {"member": 1, "value": float("nan")}])
    assert (
        repr(_Notebook(path).pages)
        == "{'piece': [{'member': 0, 'value': 0.30000000000000004}, {'member': 1, 'value': nan}]}"
    )
    whole = path.read_bytes()
    for bit in random.Random(0).sample(range(8 * len(whole)), 200):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        with pytest.warns(DamageFound, match=r"measured\.json .*, and what it held is measured again\.$"):
            assert _Notebook(path).pages == {}


def test_bias_targets_have_each_member_its_own_mean() -> None:
    members = [Member(seed, 1.0, 0.0, 100.0, mean) for seed, mean in enumerate((-0.5, 0.25))]
    named = earlier.together(TRAINING, "digits", "bias-reg", members)
    assert named.means == (-0.5, 0.25)
    named = dataclasses.replace(named, rate=0.05, training=dataclasses.replace(TRAINING, epochs=60))
    trained = earlier.train_members(named, Bench())
    biases = trained.ensemble.parameters["hidden.1.linear.bias"]
    torch.testing.assert_close(biases, torch.tensor([[-0.5], [0.25]]).expand(2, 4), atol=0.05, rtol=0)
    frame = earlier.table(named, trained.rows, trained.diverged)
    assert frame.groupby("seed")["mean"].first().tolist() == [-0.5, 0.25]
    other = dataclasses.replace(named, means=(0.1, 0.25))
    assert earlier.network_id(named, 0) != earlier.network_id(other, 0)
    assert earlier.network_id(named, 1) == earlier.network_id(other, 1)


def test_epochs_after_the_end_are_refused() -> None:
    with pytest.raises(Refused, match="epoch 3 is to be measured, but training ends at 2"):
        train_and_measure.function(settings(at=(0, 3)), Bench())
