"""Counted studies on a store of their own, with nothing published."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from skiplab.reproduction.processes import dismiss
from skiplab.reproduction.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An empty store."""
    return Store(tmp_path / "store")


@pytest.fixture
def marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where counted trials leave their marks."""
    folder = tmp_path / "marks"
    folder.mkdir()
    monkeypatch.setenv("COUNTED_MARKS", str(folder))
    yield folder
    dismiss()


@pytest.fixture(autouse=True)
def published_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for published results, inside something that looks like a checkout."""
    root = tmp_path / "checkout" / "src" / "skiplab" / "published"
    root.mkdir(parents=True)
    (tmp_path / "checkout" / "pyproject.toml").touch()
    monkeypatch.setattr("skiplab.reproduction.store.PUBLISHED", root)
    return root


@pytest.fixture
def no_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let statsmodels' multipletests not collect garbage, which takes .3 s a call once many tests have run."""
    monkeypatch.setattr(gc, "collect", lambda *_: 0)
