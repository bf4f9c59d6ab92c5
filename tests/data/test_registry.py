"""The sets by name, where they live, and that asking costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from skiplab import data
from skiplab.checks import Refused
from skiplab.data.registry import SOURCES, TITLES, family, title, with_titles


def test_names() -> None:
    assert data.NAMES == ("cifar10", "cifar100-coarse", "cifar100-fine", "svhn", "stl10", "digits")


def test_every_set_has_one_title_in_figures_and_in_sentences() -> None:
    assert set(TITLES) == set(data.NAMES)
    assert len(set(TITLES.values())) == len(TITLES)
    assert title("cifar100-coarse") == "CIFAR-100 (20 labels)"
    assert title("another") == "another"
    assert with_titles("cifar10, cifar100-coarse, gain 1") == "CIFAR-10, CIFAR-100 (20 labels), gain 1"
    assert with_titles("cifar10-like digits") == "cifar10-like digits"
    assert with_titles("`run ID --data svhn` runs svhn") == "`run ID --data svhn` runs SVHN"


def test_root_is_the_chosen_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path))
    assert data.root() == tmp_path


def test_root_respects_the_users_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("SKIPLAB_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data.root() == tmp_path / "skiplab"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert data.root() == Path.home() / ".cache" / "skiplab"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data.root() == Path.home() / ".cache" / "skiplab"


@pytest.mark.parametrize("name", data.NAMES)
def test_every_name_has_a_remedy(name: str) -> None:
    expected = "pip install scikit-learn" if name == "digits" else f"skiplab data fetch {family(name)}"
    assert data.remedy(name) == expected


def test_an_unknown_name_is_refused_with_near_ones() -> None:
    with pytest.raises(Refused, match=r"data set 'cifar100' is unknown.*Did you mean .*cifar100-fine"):
        data.fingerprint("cifar100")
    with pytest.raises(Refused, match=r"data set 'cfar10' is unknown.*Did you mean cifar10"):
        data.load("cfar10")


def test_every_listed_function_is_there() -> None:
    assert {name for name in data.__all__ if not hasattr(data, name)} == set()
    assert set(dir(data)) == set(data.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = data.nonsense  # type: ignore[attr-defined]


def test_all_files_are_relative_and_each_split_has_its_size() -> None:
    for source in SOURCES.values():
        assert set(source.files) == set(source.complete) == {"train", "test"}
        assert all(not Path(p).is_absolute() for s in source.files.values() for g in s for p in g)


def test_importing_loads_nothing_heavy() -> None:
    heavy = {"numpy", "torch", "scipy", "sklearn", "pandas", "PIL", "pooch"}
    program = (
        "import sys, skiplab.data as data; data.is_available('cifar10'); data.is_available('digits'); "
        f"data.fingerprint('digits'); data.remedy('svhn'); print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
