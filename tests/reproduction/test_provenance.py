"""Provenance: code, versions, device and time behind a number."""

from __future__ import annotations

import hashlib
import json
import platform
import subprocess
from collections.abc import Callable, Iterator
from datetime import datetime
from email.message import Message
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
    cached: list[Callable[[], Any]] = [provenance.source_hash, provenance.git_hash, provenance.repository]
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


@pytest.mark.parametrize(
    ("remote", "page"),
    [
        ("https://example.org/lab/skiplab.git", "https://example.org/lab/skiplab"),
        ("https://me:secret@example.org:8443/lab/skiplab/", "https://example.org:8443/lab/skiplab"),
        ("git@example.org:lab/skiplab.git", "https://example.org/lab/skiplab"),
        ("ssh://git@example.org:22/lab/skiplab.git", "https://example.org/lab/skiplab"),
        ("ssh://git@example.org/lab/skiplab", "https://example.org/lab/skiplab"),
        ("/srv/git/skiplab.git", None),
        ("../skiplab", None),
        ("file:///srv/skiplab", None),
        ("javascript:alert(1)//x/y", None),
        ('https://example.org/"><script>', None),
        ("", None),
    ],
)
def test_a_repository_has_a_page_if_it_is_fetched_from_a_host(remote: str, page: str | None) -> None:
    assert provenance.web_page(remote) == page


def test_the_repository_is_the_one_that_was_cloned(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert provenance.repository() is None
    provenance.repository.cache_clear()
    root = package.parent.parent
    for words in (["init", "-q"], ["remote", "add", "origin", "git@example.org:lab/skiplab.git"]):
        subprocess.run(["git", *words], cwd=root, check=True)
    assert provenance.repository() == "https://example.org/lab/skiplab"
    provenance.repository.cache_clear()
    about = Message()
    about["Project-URL"] = "Repository, https://example.org/published/skiplab"
    monkeypatch.setattr(provenance.metadata, "metadata", lambda name: about)
    assert provenance.repository() == "https://example.org/published/skiplab"
