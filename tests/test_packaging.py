"""What the package says of itself: one version, and types for those who check theirs."""

from __future__ import annotations

import importlib.resources
import re
from pathlib import Path

import pytest

import skiplab

ROOT = Path(__file__).parents[1]


def test_the_citation_has_the_packages_version() -> None:
    found = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert found is not None
    assert found[1] == skiplab.__version__


def test_the_build_takes_the_version_from_the_package() -> None:
    metadata = pytest.importorskip("hatchling.metadata.core")
    manager = pytest.importorskip("hatchling.plugin.manager")
    project = metadata.ProjectMetadata(str(ROOT), manager.PluginManager())
    assert project.version == skiplab.__version__


def test_type_checkers_may_read_the_package() -> None:
    assert importlib.resources.files("skiplab").joinpath("py.typed").is_file()
