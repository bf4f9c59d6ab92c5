"""What a user reads when results on disk are damaged: one sentence on standard error, and all the rest."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from counted_studies import counts
from typer.testing import Result

Cli = Callable[..., Result]


@pytest.fixture
def ran(counted: Cli) -> Cli:
    """The command line, two studies having been run."""
    for study in ("figure-1", "figure-2"):
        assert counted("run", f"toy2000/{study}", "--executor", "serial").exit_code == 0
    return counted


def test_run_says_what_was_damaged_and_computes_it_again(ran: Cli, place: Path, tmp_path: Path) -> None:
    before = ran("run", "toy2000/figure-1", "--executor", "serial").stdout
    folder = min((place / "trials").iterdir())
    content = bytearray((folder / "table.parquet").read_bytes())
    content[len(content) // 2] ^= 4
    (folder / "table.parquet").write_bytes(content)
    started = sum(counts(tmp_path / "marks").values())
    result = ran("run", "toy2000/figure-1", "toy2000/figure-2", "--executor", "serial")
    assert result.exit_code == 0
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("skiplab: ")]
    assert f"{folder}/table.parquet fails its checksum; {folder.name} was set aside as .damaged-" in sentence
    assert sentence.endswith("and the trial is computed again when a study needs it.")
    assert "Traceback" not in result.output
    assert sum(counts(tmp_path / "marks").values()) == started + 1
    again = ran("run", "toy2000/figure-1", "--executor", "serial")
    assert again.stdout == before
    assert "skiplab: " not in again.stderr


@pytest.mark.slow
@pytest.mark.parametrize("content", [None, "", '{"study": "toy2000/figure-2"', "[]", "{}"])
@pytest.mark.parametrize("words", [("list",), ("check", "all"), ("report",), ("show", "toy2000/figure-2")])
def test_a_damaged_run_stops_no_command(
    ran: Cli, place: Path, words: tuple[str, ...], content: str | None
) -> None:
    path = place / "studies/toy2000/figure-2/quick/run.json"
    path.unlink()
    if content is not None:
        path.write_text(content)
    result = ran(*words)
    assert result.exit_code == 0, result.output
    (sentence,) = [line for line in result.stderr.splitlines() if line.startswith("skiplab: ")]
    assert sentence.startswith(f"skiplab: {path} ")
    assert sentence.endswith(
        "; the run is passed over, and `skiplab run toy2000/figure-2 --scale quick` mends it."
    )
    if words[0] == "check":
        assert "toy2000/figure-1" in result.stdout
        assert "toy2000/figure-2" not in result.stdout


def test_other_warnings_look_as_ever() -> None:
    script = (
        "import warnings; from skiplab.cli import damage_in_a_line; from skiplab.files import DamageFound\n"
        "with damage_in_a_line():\n"
        "    for _ in range(2): warnings.warn('a thing is cut.', DamageFound)\n"
        "    warnings.warn('something else')\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stderr
    assert said.splitlines()[0] == "skiplab: a thing is cut."
    assert said.count("a thing is cut.") == 1
    assert "UserWarning: something else" in said
