"""The documentation names every instrument, and its pages are made of what there is."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import skiplab

DOCS = Path(__file__).parents[2] / "docs"
NOT_INSTRUMENTS = {"run", "results", "Ensemble", "Subject", "HessianProduct", "Exact", "Lanczos", "Moments"}
ROOMS = {"remedies"}  # modules, whose own names are listed


@pytest.fixture
def conf() -> ModuleType:
    """What Sphinx reads."""
    spec = importlib.util.spec_from_file_location("docs_conf", DOCS / "conf.py")
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


def test_the_page_of_questions_names_every_instrument() -> None:
    page = (DOCS / "instruments.md").read_text()
    missing = [name for name in set(skiplab.__all__) - NOT_INSTRUMENTS - ROOMS if f"sl.{name}(" not in page]
    assert not missing


def test_the_reference_has_every_public_name_once(conf: ModuleType) -> None:
    page = conf.names_page()
    for name in set(skiplab.__all__) - ROOMS:
        assert page.count(f":: skiplab.{name}\n") == 1, name


def stock_models_are_here() -> bool:
    try:
        importlib.import_module("torchvision")
    except (ImportError, RuntimeError):
        return False
    return True


def test_every_example_has_a_page_in_the_contents(conf: ModuleType) -> None:
    contents = (DOCS / "index.md").read_text()
    for path in (DOCS.parent / "examples").glob("*.py"):
        assert f"made/{path.stem}\n" in contents
        page = conf.example_page(path)
        block = re.search(r"```(\{code-cell\} ipython3|python)\n(.*?)\n```", page, flags=re.DOTALL)
        assert block is not None
        code = block[2]
        assert code in path.read_text()
        # Run where the page is made, unless a package that it needs is not there.
        assert (block[1] == "python") == ("import torchvision" in code and not stock_models_are_here())
        assert code.startswith("import")


def test_bars_and_stars_in_docstrings_are_no_markup(conf: ModuleType) -> None:
    lines = ["A share of the largest |λ|, ``a * b``.", "", ">>> f(|x|)", "|x|", "", "* a"]
    conf.as_markup(None, "function", "f", None, None, lines)
    assert lines == [
        "A share of the largest \\|λ\\|, ``a * b``.",
        "",
        ">>> f(|x|)",
        "|x|",
        "",
        "\\* a",
    ]
