"""What all tests share: one thread each for torch, and every study's smoke run, made once per session."""

from __future__ import annotations

import os
import sys

# Before torch is imported: two test processes on two cores would otherwise fight over them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Before Triton is imported: where there is no GPU its kernels are interpreted, on tensors of the CPU.
if not os.path.exists("/dev/nvidiactl"):
    os.environ.setdefault("TRITON_INTERPRET", "1")

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from skiplab.reproduction.store import StudyRun
    from skiplab.reproduction.study import Study

SmokeRun = Callable[["Study"], "StudyRun"]


_KEPT: list[object] = []  # what a torch Library defines goes with it


def let_torchvision_load() -> None:
    """Let torchvision be imported where its compiled operators do not fit a CPU build of torch.

    On import it registers shapes for two of them, which needs their schemas; its image models call neither.
    Tools call this, too.
    """
    import importlib.util

    if importlib.util.find_spec("torchvision") is None:
        return
    import torch

    if hasattr(torch.ops.torchvision, "nms"):
        return
    schemas = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        schemas.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    _KEPT.append(schemas)


@pytest.fixture(scope="session", autouse=True)
def _torchvision_without_its_kernels() -> None:
    let_torchvision_load()


@pytest.fixture(autouse=True)
def _same_weights_every_time() -> None:
    """Networks that a test builds without a generator have the same weights in every run."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True, scope="session")
def _not_flushed() -> Iterator[None]:
    """Tests write thousands of files, which no power cut threatens."""
    from skiplab.files import writing

    writing.DURABLE = False
    yield
    writing.DURABLE = True


@pytest.fixture
def fresh_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is published and no image set is here but digits."""
    monkeypatch.setattr("skiplab.reproduction.store.PUBLISHED", tmp_path / "published")
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path / "no sets"))


@pytest.fixture(scope="session")
def _smoke_runs() -> dict[str, StudyRun]:
    return {}


@pytest.fixture
def smoke_run(
    fresh_machine: None, _smoke_runs: dict[str, StudyRun], tmp_path_factory: pytest.TempPathFactory
) -> SmokeRun:
    """A study's smoke run on a fresh machine: trained when first asked for, then the same for all tests."""
    from skiplab.reproduction.runner import Options, run_study
    from skiplab.reproduction.store import Store

    # One store for all studies, which share trials, and for all test processes, whose folders lie side by side.
    base = tmp_path_factory.getbasetemp()
    root = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "smoke"

    def run(study: Study) -> StudyRun:
        if study.id not in _smoke_runs:
            found = run_study(study, Store(root), scale="smoke", options=Options(executor="serial"))
            _smoke_runs[study.id] = found
        return _smoke_runs[study.id]

    return run
