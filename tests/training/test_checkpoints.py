"""A run that was interrupted goes on bit for bit: parameters, statistics, metrics and callbacks' rows."""

from __future__ import annotations

import random
import time
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from skiplab.architectures.fully_connected import PlainNet
from skiplab.architectures.resnet import ResNet
from skiplab.checks import TimeIsUp
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.files import Damaged, DamageFound
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.randomness import torch_generator
from skiplab.training import History, Plan, train
from skiplab.training.augmentation import CropAndFlip
from skiplab.training.checkpoints import EXPECTED_RATE, Checkpoints, Snapshots
from skiplab.training.loop import Callback
from skiplab.training.optimisers import SGD, Adam
from skiplab.training.regularisers import bias_targets
from skiplab.training.schedules import Steps

SEEDS = (4, 5)
STEPS = 3  # in an epoch of ten samples in batches of four


class Interrupted(RuntimeError):
    """The power cut."""


class Run:
    """One training problem, built anew each time, as a new process would."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        draw = torch_generator("samples")
        shape = (3, 8, 8) if kind == "resnet" else (6,)
        inputs = torch.randn(10, *shape, generator=draw, dtype=torch.float32)
        self.data = TensorSet(inputs, torch.randint(3, (10,), generator=draw), 3, "noise", "noise")

    def start(self) -> Ensemble:
        if self.kind == "resnet":
            return Ensemble.of(
                [ResNet(1, filters=(2, 4), outputs=3, generator=torch_generator(s)) for s in SEEDS]
            )
        return Ensemble.of(
            [PlainNet(6, 8, 3, 3, batch_norm_at=2, generator=torch_generator(s)) for s in SEEDS]
        )

    def go(
        self, checkpoints: Checkpoints | None, *, break_at: int | None = None, deadline: float | None = None
    ) -> tuple[Ensemble, History]:
        ensemble = self.start()

        def measure(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
            if step == break_at:
                raise Interrupted(f"at step {step}")
            batch = (self.data.inputs, self.data.labels)
            norms = gradient_norms(ensemble, batch, criterion=F.cross_entropy, mode="train").mean
            return [{"step": step, "member": m, "norms": row} for m, row in enumerate(norms.tolist())]

        options: dict[str, Any] = {
            "resnet": {"augmentation": CropAndFlip(2), "optimiser": Adam()},
            "plain": {"optimiser": SGD(momentum=0.9, nesterov=True), "schedule": Steps((2, 3), 0.3)},
            "diverging": {"rate": (0.01, 1e30), "optimiser": SGD()},
        }[self.kind]
        if self.kind == "plain":
            options["penalties"] = [bias_targets(ensemble, (0.1, 0.2), 0.5, SEEDS)]
        callback = Callback(frozenset({0, 4, 6, 7, 11, 15}), measure)
        plan = Plan(5, 4, SEEDS, **({"rate": 0.01} | options), callbacks=[callback])
        return ensemble, train(ensemble, self.data, plan, checkpoints=checkpoints, deadline=deadline)


def assert_identical(one: tuple[Ensemble, History], other: tuple[Ensemble, History]) -> None:
    assert torch.equal(one[0].rows, other[0].rows)
    assert one[0].fixed.keys() == other[0].fixed.keys()
    for name, tensor in one[0].fixed.items():
        assert torch.equal(tensor.nan_to_num(), other[0].fixed[name].nan_to_num())
    for quantity in ("accuracy", "loss"):
        first, second = getattr(one[1], quantity), getattr(other[1], quantity)
        assert torch.equal(first.isnan(), second.isnan())
        assert torch.equal(first.nan_to_num(), second.nan_to_num())
    assert torch.equal(one[1].diverged, other[1].diverged)
    assert repr(one[1].rows) == repr(other[1].rows)  # repr: the norms of a diverged network are NaN


every = pytest.mark.parametrize("kind", ["plain", "resnet", "diverging"])


@every
def test_stopped_by_its_time_limit_again_and_again(kind: str, tmp_path: Path) -> None:
    expected = Run(kind).go(None)
    stops = 0
    while True:
        try:
            found = Run(kind).go(Checkpoints(tmp_path), deadline=time.time() - 1)
            break
        except TimeIsUp:
            stops += 1
    assert stops == 4  # one epoch a time; the last one ends the run
    assert_identical(found, expected)


@every
@pytest.mark.parametrize("break_at", [6, 7, 11, 15])
def test_broken_off_midway(kind: str, break_at: int, tmp_path: Path) -> None:
    expected = Run(kind).go(None)
    with pytest.raises(Interrupted, match=f"at step {break_at}"):
        Run(kind).go(Checkpoints(tmp_path, least_seconds=0), break_at=break_at)
    saved = Checkpoints(tmp_path).load()
    assert saved is not None
    # Saving takes time, and the next save must wait 20 times as long; the first comes at once.
    assert 1 <= saved[1]["epoch"] <= break_at // STEPS
    assert_identical(Run(kind).go(Checkpoints(tmp_path)), expected)


def test_the_diverging_run_really_diverges_and_its_marks_survive(tmp_path: Path) -> None:
    with pytest.raises(TimeIsUp):
        Run("diverging").go(Checkpoints(tmp_path), deadline=0.0)
    _, history = Run("diverging").go(Checkpoints(tmp_path))
    assert history.diverged.tolist() == [False, True]


def test_a_run_without_checkpoints_stops_at_its_limit_too() -> None:
    with pytest.raises(TimeIsUp):
        Run("plain").go(None, deadline=0.0)


def test_a_deadline_ahead_does_not_stop_a_run(tmp_path: Path) -> None:
    assert_identical(
        Run("plain").go(Checkpoints(tmp_path), deadline=time.time() + 600), Run("plain").go(None)
    )
    assert Checkpoints(tmp_path).load() is None


# The file --------------------------------------------------------------------------------------------------


def test_tensors_and_notes_come_back_as_they_were(tmp_path: Path) -> None:
    tensors = {
        "rows": torch.randn(3, 8, generator=torch_generator(0), dtype=torch.float64),
        "not contiguous": torch.arange(6).reshape(2, 3).T,
        "alive": torch.tensor([True, False]),
        "steps": torch.tensor(7.0, dtype=torch.float64),
        "nan": torch.tensor([torch.nan, torch.inf]),
    }
    notes = {"epoch": 3, "rows": [{"value": 0.1 + 0.2, "name": "é", "nan": float("nan")}]}
    Checkpoints(tmp_path / "deep" / "folder").save(tensors, notes)
    loaded = Checkpoints(tmp_path / "deep" / "folder").load()
    assert loaded is not None
    assert loaded[0].keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert loaded[0][name].dtype == tensor.dtype
        assert loaded[0][name].shape == tensor.shape
        assert torch.equal(loaded[0][name].nan_to_num(), tensor.nan_to_num())
    assert repr(loaded[1]) == repr(notes)


def test_there_is_nothing_to_load_at_first(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path).load() is None


def test_a_save_that_fails_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save({"rows": torch.ones(2)}, {"epoch": 1})
    with pytest.raises(TypeError, match="not JSON serializable"):
        checkpoints.save({"rows": torch.zeros(2)}, {"epoch": {1, 2}})
    loaded = checkpoints.load()
    assert loaded is not None
    assert loaded[1] == {"epoch": 1}
    assert torch.equal(loaded[0]["rows"], torch.ones(2))


def test_saving_takes_at_most_a_twentieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("skiplab.training.checkpoints.time.monotonic", lambda: now[0])
    checkpoints = Checkpoints(tmp_path, least_seconds=20)
    assert not checkpoints.due()
    now[0] += 20
    assert checkpoints.due()

    def slow(*_: Any) -> None:
        now[0] += 3

    monkeypatch.setattr("skiplab.files.writing.os.replace", slow)
    checkpoints.save({"rows": torch.ones(1)}, {})
    now[0] += 59
    assert not checkpoints.due()
    now[0] += 1
    assert checkpoints.due()


def test_the_first_save_of_much_waits_until_it_is_expected_to_take_a_twentieth_of_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr("skiplab.training.checkpoints.time.monotonic", lambda: now[0])
    checkpoints = Checkpoints(tmp_path, least_seconds=20, keep=3)
    size = int(2 * EXPECTED_RATE)  # two seconds
    now[0] += 39
    assert checkpoints.due(1)
    assert checkpoints.due(3, size)
    assert not checkpoints.due(1, size)
    now[0] += 1
    assert checkpoints.due(1, size)
    checkpoints.save({"rows": torch.ones(1)}, {"epoch": 1})
    now[0] += 20
    assert checkpoints.due(2, size)  # it took no time


def test_training_says_how_much_it_would_save(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoints, said, kept = Checkpoints(tmp_path), [], []

    def due(epoch: int, size: int) -> bool:
        said.append(size)
        return True

    def save(tensors: dict[str, torch.Tensor], notes: dict[str, Any]) -> None:
        kept.append(sum(tensor.nbytes for name, tensor in tensors.items() if name != "metrics"))

    monkeypatch.setattr(checkpoints, "due", due)
    monkeypatch.setattr(checkpoints, "save", save)
    Run("plain").go(checkpoints)
    assert len(kept) == 4
    assert said == kept


def test_snapshots_are_copies_and_outlive_the_process(tmp_path: Path) -> None:
    rows = torch.randn(2, 3, generator=torch_generator("rows"))
    before = rows.clone()
    kept = Snapshots(tmp_path / "not yet")
    kept.keep(3, rows)
    rows.zero_()
    torch.testing.assert_close(kept.rows(3), before)
    torch.testing.assert_close(Snapshots(tmp_path / "not yet").rows(3), before)
    in_memory = Snapshots(None)
    in_memory.keep(0, before)
    torch.testing.assert_close(in_memory.rows(0), before)
    with pytest.raises(KeyError):
        in_memory.rows(1)


# Damage ----------------------------------------------------------------------------------------------------


def damaged(whole: bytes) -> list[bytes]:
    """200 files with one bit flipped each, and cut and empty ones."""
    changes = []
    for bit in random.Random(0).sample(range(8 * len(whole)), 200):
        changed = bytearray(whole)
        changed[bit // 8] ^= 1 << bit % 8
        changes.append(bytes(changed))
    return [*changes, b"", whole[:1], whole[: len(whole) // 2], whole[:-1], whole + b"\0", bytes(len(whole))]


def test_no_damaged_checkpoint_is_gone_on_from(tmp_path: Path) -> None:
    with pytest.raises(TimeIsUp):
        Run("plain").go(Checkpoints(tmp_path), deadline=0.0)
    path = tmp_path / "training.safetensors"
    whole = path.read_bytes()
    changes = damaged(whole)
    for change in changes:
        path.write_bytes(change)
        with pytest.warns(
            DamageFound, match=r"training\.safetensors .*set aside as \..*, and training starts afresh\.$"
        ):
            assert Checkpoints(tmp_path).load() is None
        assert not path.exists()
    kept = [each.read_bytes() for each in tmp_path.glob(".damaged-*")]
    assert sorted(kept) == sorted(changes)


def test_a_run_with_a_damaged_checkpoint_starts_afresh(tmp_path: Path) -> None:
    expected = Run("plain").go(None)
    with pytest.raises(TimeIsUp):
        Run("plain").go(Checkpoints(tmp_path), deadline=0.0)
    path = tmp_path / "training.safetensors"
    path.write_bytes(damaged(path.read_bytes())[0])
    with pytest.warns(DamageFound):
        found = Run("plain").go(Checkpoints(tmp_path))
    assert_identical(found, expected)


def test_no_damaged_snapshot_is_measured(tmp_path: Path) -> None:
    Snapshots(tmp_path).keep(3, torch.ones(2, 3))
    path = tmp_path / "epoch-3.safetensors"
    for change in damaged(path.read_bytes()):
        path.write_bytes(change)
        with pytest.raises(Damaged, match=r"epoch-3\.safetensors (fails its checksum|is empty)"):
            Snapshots(tmp_path).rows(3)
    path.unlink()
    with pytest.raises(Damaged, match=r"epoch-3\.safetensors is missing"):
        Snapshots(tmp_path).rows(3)


def branch(**changes: Any) -> tuple[Ensemble, TensorSet, Plan]:
    run = Run("plain")
    options: dict[str, Any] = {"rate": 0.05, "optimiser": SGD(momentum=0.9, nesterov=True)}
    return run.start(), run.data, Plan(5, 4, SEEDS, **options | changes)


def test_another_training_branches_off_after_an_epoch(tmp_path: Path) -> None:
    """Lowering the rate after epoch 2 of a training without drops is training with a drop there."""
    trunk, data, plan = branch()
    checkpoints = Checkpoints(tmp_path / "trunk", keep=2)
    train(trunk, data, plan, checkpoints=checkpoints)
    expected, _, dropping = branch(schedule=Steps((2,)))
    history = train(expected, data, dropping)
    other = branch()[0]
    found = train(
        other, data, dropping, checkpoints=Checkpoints(tmp_path / "branch", start=checkpoints.kept())
    )
    assert_identical((other, found), (expected, history))
    assert not torch.equal(trunk.rows, other.rows)


def test_a_branch_that_was_interrupted_goes_on_with_its_own_state(tmp_path: Path) -> None:
    trunk, data, plan = branch()
    checkpoints = Checkpoints(tmp_path / "trunk", keep=2)
    train(trunk, data, plan, checkpoints=checkpoints)
    dropping = branch(schedule=Steps((2,)))[2]
    expected = branch()[0]
    history = train(
        expected, data, dropping, checkpoints=Checkpoints(tmp_path / "a", start=checkpoints.kept())
    )
    other = branch()[0]
    with pytest.raises(TimeIsUp):
        train(
            other,
            data,
            dropping,
            checkpoints=Checkpoints(tmp_path / "b", start=checkpoints.kept()),
            deadline=0.0,
        )
    again = branch()[0]
    found = train(again, data, dropping, checkpoints=Checkpoints(tmp_path / "b", start=checkpoints.kept()))
    assert_identical((again, found), (expected, history))
