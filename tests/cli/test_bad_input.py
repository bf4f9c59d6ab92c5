"""Command lines and settings that nobody would write: each ends in an answer or in a sentence, never in a traceback.

A few dozen cases per command by default, ``SKIPLAB_CASES`` (1,000) in the slow suite.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

pytest.importorskip("hypothesis", reason="hypothesis is among the packages for development")

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from skiplab.checks import Refused, SkiplabError
from skiplab.cli import run as run_command
from skiplab.data import download, npm
from skiplab.reproduction.settings import choose, parse_duration
from skiplab.reproduction.study import SCALES
from skiplab.studies import CATALOGUE

Cli = Callable[..., Result]
CASES = int(os.environ.get("SKIPLAB_CASES", "1000"))

few = settings(
    max_examples=25, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip
many = settings(few, max_examples=CASES)


def as_few_and_many(test: Callable[..., None]) -> Callable[..., None]:
    """The same property with few cases, and in the slow suite with many."""
    return pytest.mark.parametrize(
        "cases", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
    )(test)


# Names and values that have broken programs before, and any other.
ODD = (
    "", " ", "-", "--", "-1", "0", "1e999", "nan", "NaN", "inf", "-inf", "1_000", "٣", "½", "0x10", "None", "none",
    "true", "TRUE", "[]", "{}", "()", "a,b", ",", ",,", "1,2,", "=", "a=b=c", "~", "~root", "C:\\x", ".", "\\", "'",
    "`id`", "$(id)", "%s%n", "{0}", "[bold]x[/]", "[/]", "[", "\u202e", "\ud800", "é", "漢字", "💥", "\t", "\n",
    "a\nb", "\x1b[31m", "x" * 300, "cifar10", "digits", "toy2000/figure-1", "toy2000", "tour", "all", "*", "quick",
)  # fmt: skip
# No system passes a zero on. A word may become a place: it stays inside the folder of the test.
words = st.one_of(st.sampled_from(ODD), st.text(max_size=30)).filter(
    lambda text: "\0" not in text and not text.startswith("/") and ".." not in text
)
# Where nothing is written, any place will do.
anywhere = words | st.sampled_from(["/", "//", "..", "../..", "/dev/null", "/proc/self/mem", "/etc/passwd"])
numbers = st.one_of(st.integers(-3, 9).map(str), st.floats().map(str), words)


def options(*which: str, value: Any = words) -> Any:
    """Some of these options, each with any value."""
    return st.lists(st.tuples(st.sampled_from(which), value), max_size=3).map(
        lambda pairs: [word for pair in pairs for word in pair]
    )


def check_answer(result: Result, line: list[str]) -> None:
    """An answer, or one sentence and the status of a failure."""
    assert result.exception is None or isinstance(result.exception, SystemExit), (line, result.exception)
    assert result.exit_code in (0, 1, 2), (line, result.exit_code)
    assert "Traceback" not in result.output, line
    if result.exit_code:
        assert result.stderr.strip(), line
    assert "\x1b" not in result.stderr, line


@pytest.fixture
def walled(counted: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """The command line in a folder of its own, without a network, benchmarks, figures and worker processes."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(download, "download", _no_network)
    monkeypatch.setattr(npm, "pack", _no_npm)
    monkeypatch.setattr(run_command, "drawn", lambda study, run: run)
    monkeypatch.setattr("skiplab.cli.show.drawn", lambda study, run: run)
    monkeypatch.setattr(run_command, "write_report", lambda store, out: "left out")
    monkeypatch.setattr("skiplab.cli.bench.measured", _no_benchmark)
    monkeypatch.setattr("skiplab.diagnosis.diagnose.diagnose", _no_measuring)
    monkeypatch.setattr("skiplab.diagnosis.comparison.compare", _no_measuring)
    (tmp_path / "net.py").write_text(NETWORKS)
    (tmp_path / "broken.py").write_text("def build(: pass")
    return counted


def _no_network(*_: Any) -> Path:
    raise download.DownloadFailed("the network is closed")


def _no_benchmark(*_: Any) -> Any:
    raise Refused("benchmarks are not run here.")


def _no_measuring(*_: Any, **__: Any) -> Any:
    raise Refused("networks are not measured or trained here.")


def _no_npm(*_: Any) -> Path:
    raise npm.NpmFailed("npm is not installed")


sets = st.lists(
    st.tuples(
        st.sampled_from(["runs", "seed", "shift", "gains", "limit", "fast", "data", "nonsense"]), numbers
    ).map("=".join)
    | words,
    max_size=3,
).map(lambda pairs: [word for pair in pairs for word in ("--set", pair)])
studies = st.lists(
    st.sampled_from(["toy2000/figure-1", "toy2000/table-1", "toy2000"]) | words, min_size=1, max_size=2
)
known = st.sampled_from(["toy2000/figure-1", "toy2000"])
verbs = st.sampled_from(["pack", "unpack", "verify"])
factories = st.one_of(
    st.sampled_from(
        ["net.py:build", "net.py:tuple_of", "net.py:none", "net.py:fails", "net.py:nothing", "net.py"]
    ),
    st.tuples(st.sampled_from(["timm", "torchvision", "net.py", "broken.py", "."]), words).map(":".join),
    words,
)
NETWORKS = """
from torch import nn, zeros
def build(): return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
def tuple_of(): return build(), (zeros(4, 64), zeros(4).long())
def none(): return None
def fails(): raise KeyError("as it was told to")
"""
LINES: dict[str, Any] = {
    "run": st.tuples(
        studies,
        sets,
        options("--scale", "--data", "--device", "--time-limit"),
        options("--runs", "--seed", value=numbers),
    ).map(lambda parts: ["run", "--executor", "serial", *(word for part in parts for word in part)]),
    "executor": st.tuples(studies, words.filter(bool)).map(
        lambda parts: ["run", *parts[0], "--executor", parts[1]]
    ),
    "list": options("--store", "--json", "--nonsense", value=anywhere).map(lambda rest: ["list", *rest]),
    "show": st.tuples(words | known, options("--run", "--store", value=anywhere)).map(
        lambda parts: ["show", parts[0], *parts[1]]
    ),
    "check": options("--store", "--rows", "--all", "--json", value=anywhere).map(
        lambda rest: ["check", *rest]
    ),
    "report": st.tuples(st.sampled_from(["--out", "--store"]), words).map(lambda pair: ["report", *pair]),
    "publish": st.tuples(words | known, options("--scale", "--store")).map(
        lambda parts: ["publish", parts[0], *parts[1]]
    ),
    "bench": st.tuples(words.filter(bool), options("--rounds", "--device", value=numbers)).map(
        lambda parts: ["bench", *parts[1], parts[0]]
    ),
    "diagnose": st.tuples(
        factories,
        options("--data", "--only", "--budget", "--memory", "--html"),
        options("--samples", "--seed", value=numbers),
        st.sampled_from([[], ["--json"]]),
    ).map(lambda parts: ["diagnose", *parts[1], *parts[2], *parts[3], "--", parts[0]]),
    "compare": st.tuples(
        st.lists(factories, max_size=3),
        options("--data", "--measure", "--html"),
        options("--seeds", "--steps", "--rate", value=numbers),
    ).map(lambda parts: ["compare", *parts[1], *parts[2], "--", *parts[0]]),
    "store": st.tuples(verbs, st.lists(words, max_size=2), options("--store")).map(
        lambda parts: ["store", parts[0], *parts[1], *parts[2]]
    ),
    "data": st.tuples(st.sampled_from(["fetch", "list"]), st.lists(words, max_size=2)).map(
        lambda parts: ["data", parts[0], *parts[1]]
    ),
}


@as_few_and_many
@pytest.mark.parametrize("command", LINES)
def test_no_command_line_ends_in_a_traceback(walled: Cli, command: str, cases: Any) -> None:
    @cases
    @given(line=LINES[command])
    def holds(line: list[str]) -> None:
        assume(not any(word.startswith(("dask", "processes")) for word in line))  # which start processes
        check_answer(walled(*line), line)

    holds()


@as_few_and_many
def test_no_setting_of_any_study_ends_in_a_traceback(cases: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every setting of every study at every scale, with any value: settings that can run, or one sentence."""
    every = [(study, name) for study in CATALOGUE for name in vars(study.settings["quick"])]

    @cases
    @given(which=st.sampled_from(every), scale=st.sampled_from(SCALES) | words, value=numbers, other=words)
    def holds(which: Any, scale: str, value: str, other: str) -> None:
        study, name = which
        for overrides in ({name: value}, {name: value, other: value}):
            with suppress(SkiplabError):
                choose(study, scale, overrides)

    holds()


@as_few_and_many
def test_no_duration_ends_in_a_traceback(cases: Any) -> None:
    @cases
    @given(text=st.one_of(numbers, st.from_regex(r"\d{1,400}(\.\d+)?\s?[smh]?", fullmatch=True)))
    def holds(text: str) -> None:
        with suppress(SkiplabError):
            assert parse_duration(text) >= 0

    holds()
