"""The command line in this process, with the counted studies or skiplab's own, on a store of its own."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

MODULES = ("list", "run", "show", "check", "report", "publish")
Cli = Callable[..., Result]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with nothing published, no image sets but digits, and 80 columns; return the store's root."""
    root = tmp_path / "checkout" / "src" / "skiplab" / "published"
    root.mkdir(parents=True)
    (tmp_path / "checkout" / "pyproject.toml").touch()
    (tmp_path / "marks").mkdir()
    monkeypatch.setattr("skiplab.reproduction.store.PUBLISHED", root)
    monkeypatch.setenv("SKIPLAB_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path / "no sets"))
    monkeypatch.setenv("COUNTED_MARKS", str(tmp_path / "marks"))
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path / "store"


@pytest.fixture
def cli() -> Cli:
    """Call skiplab with words and return its exit status and output."""
    from skiplab.cli import app

    return lambda *words: CliRunner().invoke(app, list(words))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Cli:
    """The same with the counted studies."""
    from counted_studies import CATALOGUE

    for name in MODULES:
        monkeypatch.setattr(importlib.import_module(f"skiplab.cli.{name}"), "CATALOGUE", CATALOGUE)
    return cli
