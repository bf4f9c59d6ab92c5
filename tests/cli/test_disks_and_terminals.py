"""Full disks, unreadable files, stores that cannot be written, terminals of plain letters: one sentence each.

Done for real: sizes of files are limited, permissions taken away, output goes where only ASCII is known.
"""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import counted_studies
import pytest
from counted_studies import counts
from typer.testing import Result

Cli = Callable[..., Result]
RUN = ("run", "toy2000/figure-1", "--executor", "serial")


def sentence_of(result: Result) -> str:
    """The one sentence of a command that failed."""
    assert result.exit_code == 1, result.output
    assert "Traceback" not in result.output
    (said,) = [line for line in result.stderr.splitlines() if line.startswith("skiplab: ")]
    return said


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Set a limit on the size of files, in bytes; Python turns the signal into an error, as of a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield lambda size: resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [0, 100, 3000])
def test_a_run_on_a_full_disk_says_where_and_leaves_nothing_half_written(
    counted: Cli, place: Path, tmp_path: Path, limited: Callable[[int], None], size: int
) -> None:
    limited(size)
    said = sentence_of(counted(*RUN))
    limited(resource.RLIM_INFINITY)
    assert str(place) in said
    assert said.endswith("(File too large); raise the limit on the size of files (ulimit -f) or name another place, "
                         "then give the same command again.")  # fmt: skip
    # Nothing is computed for a store that takes nothing.
    assert (sum(counts(tmp_path / "marks").values()) == 0) == (size == 0)
    assert not list(place.rglob(".skiplab-*"))
    assert all((path / "table.parquet").stat().st_size for path in place.glob("trials/*"))
    assert counted(*RUN).exit_code == 0


@pytest.mark.parametrize("words", [("report",), ("store", "pack", "results"), ("show", "toy2000/figure-1")])
def test_other_commands_on_a_full_disk_leave_what_was_there(
    counted: Cli, place: Path, tmp_path: Path, limited: Callable[[int], None], words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    assert counted(*RUN).exit_code == 0
    for picture in place.glob("studies/*/*/*/figure.*"):
        picture.unlink()
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    limited(3000)
    result = counted(*words)
    limited(resource.RLIM_INFINITY)
    assert "File too large" in sentence_of(result)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith(".skiplab-")]


# A user without rights --------------------------------------------------------------------------------------


def without_rights() -> None:
    """Let root, as whom containers run tests, be bound by the permissions of files like anybody else."""
    drop_from_bounding_set, override, read_search = 24, 1, 2  # of linux/prctl.h and linux/capability.h
    for each in (override, read_search):
        if ctypes.CDLL(None).prctl(drop_from_bounding_set, each) != 0:
            os._exit(77)


def as_user(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command as somebody who may not do everything."""
    result = subprocess.run(
        [sys.executable, counted_studies.__file__, *words], cwd=tmp_path, capture_output=True, text=True, check=False,
        preexec_fn=without_rights if os.geteuid() == 0 else None,
    )  # fmt: skip
    if result.returncode == 77:
        pytest.skip("root cannot give up its rights here")
    return result


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_store_that_cannot_be_written_is_known_before_anything_is_computed(
    place: Path, tmp_path: Path, mode: int
) -> None:
    place.mkdir()
    place.chmod(mode)
    result = as_user(tmp_path, *RUN)
    place.chmod(0o755)
    assert result.returncode == 1, result.stderr
    assert result.stderr.splitlines()[-1].startswith(f"skiplab: {place}")
    assert "(Permission denied); change its permissions or name another place" in result.stderr
    assert "Traceback" not in result.stderr
    assert counts(tmp_path / "marks") == {}


def test_a_file_that_cannot_be_read_is_named_and_not_called_damaged(
    counted: Cli, place: Path, tmp_path: Path
) -> None:
    assert counted(*RUN).exit_code == 0
    table = min((place / "trials").iterdir()) / "table.parquet"
    table.chmod(0o000)
    result = as_user(tmp_path, *RUN)
    assert result.returncode == 1
    assert f"skiplab: {table} cannot be read (Permission denied); change its permissions" in result.stderr
    assert not list((place / "trials").glob(".damaged-*"))


# Terminals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("words", [("list",), ("show", "orhan2017/figure-7"), ("check",)])
@pytest.mark.parametrize("encoding", ["ascii", pytest.param("latin-1", marks=pytest.mark.slow)])
def test_a_terminal_without_utf_8_gets_plain_letters(
    tmp_path: Path, words: tuple[str, ...], encoding: str
) -> None:
    environment = os.environ | {"PYTHONIOENCODING": encoding, "SKIPLAB_STORE": str(tmp_path), "COLUMNS": "80"}
    result = subprocess.run(
        [sys.executable, "-m", "skiplab", *words], env=environment, capture_output=True, check=False
    )
    assert result.returncode == 0, result.stderr
    text = result.stdout.decode(encoding)
    assert "Traceback" not in result.stderr.decode(encoding)
    # A claim that holds must not look like one that is open.
    assert " + " in text or "+" in text.replace("+-", "")
    assert "\x1b" not in text


def test_a_full_standard_output_is_a_sentence() -> None:
    with open("/dev/full", "w") as full:
        result = subprocess.run(
            [sys.executable, "-m", "skiplab", "data", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert result.returncode != 0
    assert "Traceback" not in result.stderr


# store verify -----------------------------------------------------------------------------------------------


@pytest.fixture
def ran(counted: Cli) -> Cli:
    assert counted(*RUN).exit_code == 0
    return counted


def test_verify_finds_a_sound_store_sound(ran: Cli, place: Path) -> None:
    result = ran("store", "verify")
    assert result.exit_code == 0
    assert result.stdout == (
        f"6 trial(s), 1 run(s), 0 checkpoint file(s) in {place} and 0 published studies: all as they were written.\n"
    )


def test_verify_names_sets_aside_and_the_next_run_mends(ran: Cli, place: Path, tmp_path: Path) -> None:
    before = {path.parent.name: path.read_bytes() for path in place.glob("trials/*/table.parquet")}
    first, second = sorted(place.glob("trials/*"))[:2]
    content = bytearray((first / "table.parquet").read_bytes())
    content[-9] ^= 1
    (first / "table.parquet").write_bytes(content)
    (second / "record.json").write_text('{"seconds": "many", "device": "CPU", "source": "x"}')
    checkpoint = place / "checkpoints" / first.name / "training.safetensors"
    checkpoint.parent.mkdir(parents=True)
    checkpoint.write_bytes(b"cut")
    run = place / "studies/toy2000/figure-1/quick/run.json"
    run.write_text(run.read_text().replace("quick", "quack"))
    result = ran("store", "verify")
    assert result.exit_code == 1
    said = [line for line in result.stderr.splitlines() if line.startswith("skiplab: ")]
    for part in (
        f"{first}/table.parquet fails its checksum; {first.name} was set aside as .damaged-{first.name}-",
        f"{second}/record.json is no record of a trial (seconds of a record is 'many')",
        f"{checkpoint} fails its checksum; training.safetensors was set aside as .damaged-training.safetensors-",
        f"{run} fails its checksum; quick was set aside as .damaged-quick-",
    ):
        assert sum(part in line for line in said) == 1, part
    assert result.stdout.startswith("6 trial(s), 1 run(s), 1 checkpoint file(s) in ")
    assert result.stdout.endswith(" published studies: 4 damaged.\n")
    (kept,) = place.glob(f"trials/.damaged-{first.name}-*")
    assert (kept / "table.parquet").read_bytes() == content
    again = ran("store", "verify")
    assert again.exit_code == 0
    assert "4 set aside earlier (.damaged-…) can be removed by hand." in again.stdout
    assert ran(*RUN).exit_code == 0
    assert counts(tmp_path / "marks").most_common(2)[1][1] == 2  # two trials ran again, the others did not
    assert {
        path.parent.name: path.read_bytes() for path in place.glob("trials/[!.]*/table.parquet")
    } == before
    # What was set aside stays, also of a checkpoint whose trial has finished.
    assert len(list(place.rglob(".damaged-*"))) == 4


def test_verify_says_which_run_lacks_trials(ran: Cli, place: Path) -> None:
    shutil.rmtree(min(place.glob("trials/*")))
    result = ran("store", "verify")
    assert result.exit_code == 0
    assert "`skiplab run toy2000/figure-1 --scale quick` computes them again." in result.stdout
