"""What README and the examples say is what the project does."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_the_numbers_in_the_readme_are_the_published_ones() -> None:
    assert run("tools/readme.py", "--check").returncode == 0, "run `python tools/readme.py`"


def test_the_errata_are_those_of_the_studies() -> None:
    assert run("tools/errata.py", "--check").returncode == 0, "run `python tools/errata.py`"


def test_every_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README)
    assert len(links) >= 6
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_in_the_readme_exists() -> None:
    named = {line.split()[1] for line in README.splitlines() if line.startswith("skiplab ")}
    listed = set(re.findall(r"^│ (\w+)", run("-m", "skiplab", "--help").stdout, flags=re.MULTILINE))
    assert named == listed


def test_every_option_that_the_readme_names_for_run_exists() -> None:
    text = re.search(r"^skiplab run orhan2017.*?^skiplab run tour", README, flags=re.DOTALL | re.MULTILINE)
    assert text is not None
    options = set(re.findall(r"--[a-z-]+", text[0]))
    help_text = run("-m", "skiplab", "run", "--help").stdout
    assert len(options) >= 9
    assert [option for option in options if option not in help_text] == []


def test_make_knows_the_commands_of_the_readme() -> None:
    rules = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"^make (\w+)", README, flags=re.MULTILINE)) <= rules


@pytest.mark.parametrize("script", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(script: Path) -> None:
    done = run("-W", "error", str(script))
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
