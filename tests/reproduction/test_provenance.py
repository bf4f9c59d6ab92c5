"""Provenance: code, versions, device and time behind a number."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import torch

from skiplab.reproduction import provenance
from skiplab.version import __version__


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package of our own in place of skiplab's, without git."""
    folder = tmp_path / "src" / "package"
    (folder / "room").mkdir(parents=True)
    (folder / "room" / "a.py").write_text("x = 1\n")
    monkeypatch.setattr(provenance, "PACKAGE", folder)
    cached: list[Callable[[], Any]] = [provenance.source_hash, provenance.git_hash]
    for function in cached:
        function.cache_clear()  # type: ignore[attr-defined]
    yield folder
    for function in cached:
        function.cache_clear()  # type: ignore[attr-defined]


def test_the_source_hash_names_every_python_file(package: Path) -> None:
    expected = hashlib.sha256(b"room/a.py\0x = 1\n").hexdigest()[:16]
    assert provenance.source_hash() == expected
    provenance.source_hash.cache_clear()
    (package / "notes.txt").write_text("no code")
    assert provenance.source_hash() == expected
    provenance.source_hash.cache_clear()
    (package / "room" / "a.py").write_text("x = 2\n")
    assert provenance.source_hash() != expected


def test_without_git_there_is_no_commit(package: Path) -> None:
    assert provenance.git_hash() is None


def test_a_broken_checkout_has_no_commit_either(package: Path) -> None:
    (package.parents[1] / ".git").touch()
    assert provenance.git_hash() is None


def test_a_record_says_everything_and_is_json() -> None:
    facts = provenance.describe("cpu", 1.23456)
    assert facts["source"] == provenance.source_hash()
    assert facts["versions"]["torch"] == torch.__version__
    assert facts["versions"]["python"] == platform.python_version()
    assert facts["versions"]["skiplab"] == __version__  # whether installed or not
    assert facts["device"] == f"{platform.machine()} CPU, 1 thread"
    assert facts["seconds"] == 1.235
    assert datetime.fromisoformat(facts["finished"]).utcoffset() is not None
    assert json.loads(json.dumps(facts)) == facts
