"""`skiplab list` and `skiplab check`: exact JSON, readable tables, and a quick start."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counted_studies import draw
from typer.testing import Result

import skiplab
from skiplab.reproduction import store
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.trial import Trial
from skiplab.studies import CATALOGUE

Cli = Callable[..., Result]
FIELDS = [
    "study", "claim", "text", "source", "verdict", "reason", "p_adjusted", "scale", "stale", "rows",
]  # fmt: skip
ROW_FIELDS = [
    "condition", "headline", "verdict", "reason", "statistic", "low", "high", "unit", "kind", "margin", "worth", "p",
    "level", "paired", "paper_value", "runs", "needs", "missing", "detail",
]  # fmt: skip


NONE = {"holds": 0, "contradicted": 0, "undecided": 0}


def strict(text: str) -> Any:
    """Read JSON without NaN or infinity."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_list_json_has_its_exact_schema(cli: Cli) -> None:
    result = cli("list", "--json")
    assert result.exit_code == 0
    rows = strict(result.stdout)
    assert [row["id"] for row in rows] == [study.id for study in CATALOGUE]
    for row in rows:
        assert list(row) == ["id", "paper", "item", "title", "claims", "cost"]
        assert row["id"].startswith(row["paper"] + "/")
        assert all(isinstance(claim, str) for claim in row["claims"])
        assert list(row["cost"]) == ["quick", "paper"]
        assert all(isinstance(cost, int | float) for cost in row["cost"].values())


def test_list_fits_80_columns_and_names_every_id_whole(cli: Cli) -> None:
    output = cli("list").stdout
    assert max(map(len, output.splitlines())) <= 80
    for study in CATALOGUE:
        assert study.id in output


def test_list_counts_the_last_verdicts(counted: Cli) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    output = counted("list").stdout
    assert "✓2 ✗0 ?0" in output
    assert output.count("not run") == 2
    assert "1.7 h*" in output
    assert "* for one H200" in output


@pytest.mark.parametrize(
    "arguments", [["list"], ["list", "--json"], ["--help"], ["bench", "--help"]], ids=str
)
def test_what_only_tells_imports_nothing_heavy(arguments: list[str]) -> None:
    heavy = {
        "torch",
        "scipy",
        "pandas",
        "numpy",
        "matplotlib",
        "pyarrow",
        "sklearn",
        "joblib",
        "jinja2",
        "PIL",
    }
    code = (
        f"import sys; from skiplab.cli import app; app({arguments!r}, standalone_mode=False); "
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.splitlines()[-1] == "[]"


def test_check_json_has_its_exact_schema(counted: Cli) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    result = counted("check", "--json")
    assert result.exit_code == 0
    answer = strict(result.stdout)
    assert list(answer) == ["claims", "counts", "amendments"]
    assert answer["counts"] == {"paper": {"holds": 2, "contradicted": 0, "undecided": 0}, "ours": NONE}
    assert [list(claim) for claim in answer["claims"]] == [FIELDS] * 2
    first, exact = answer["claims"]
    assert (first["study"], first["claim"], first["verdict"]) == ("toy2000/figure-1", "positive", "holds")
    assert (first["source"], first["scale"], first["stale"]) == ("figure 1", "quick", False)
    headline, further = first["rows"]
    assert list(headline) == ROW_FIELDS
    assert (headline["headline"], further["headline"], further["verdict"]) == (True, False, "contradicted")
    assert (headline["runs"], headline["worth"], headline["paper_value"]) == (6, 0.1, None)
    assert 0 < headline["low"] < headline["statistic"] < headline["high"]
    assert exact["p_adjusted"] is None


def test_check_json_of_nothing(cli: Cli) -> None:
    nothing = {"claims": [], "counts": {"paper": NONE, "ours": NONE}, "amendments": 0}
    assert strict(cli("check", "--json").stdout) == nothing
    assert cli("check").stdout == "Nothing has been run yet; try `skiplab run tour`.\n"


def test_smoke_runs_decide_nothing(counted: Cli) -> None:
    result = counted("run", "toy2000/figure-1", "--scale", "smoke", "--executor", "serial")
    assert "Smoke scale only shows that it runs" in result.stdout
    assert "holds" not in result.stdout
    assert strict(counted("check", "--json").stdout)["claims"] == []


def test_check_marks_stale_results(counted: Cli) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    assert "stale" not in counted("check", "all").stdout
    try:
        Trial(draw.function, draw.name, 2)
        rows = strict(counted("check", "--json").stdout)["claims"]
        output = counted("check", "all").stdout
    finally:
        Trial(draw.function, draw.name, 1)
    assert [row["stale"] for row in rows] == [True] * 2
    assert "stale: its trials have a newer version" in " ".join(output.split())


def test_check_is_readable_at_80_columns(counted: Cli) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    output = counted("check", "toy2000/figure-1").stdout
    assert max(map(len, output.splitlines())) <= 80
    assert "toy2000/figure-1 at quick scale" in output
    assert re.search(r"✓ +Values are positive\. +[\d.]+ +\[[\d.]+, [\d.]+\] +1 of 1", output)
    assert "✗" not in output  # a further condition has no verdict
    assert "…" not in output
    assert output.splitlines()[-3:] == [
        "2 claims of the papers: 2 hold, 0 are contradicted, 0 are undecided",
        "0 claims of ours: 0 hold, 0 are contradicted, 0 are undecided",
        "0 amended after results were seen; `skiplab show ID --amendments` lists them.",
    ]
    rows = counted("check", "--rows").stdout
    assert max(map(len, rows.splitlines())) <= 80
    assert "✓ holds: Values are positive. (figure 1" in rows
    assert "all [runs]" in rows
    assert "negated" in rows


def test_check_alone_says_what_stands_of_every_paper(counted: Cli) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial", "--set", "shift=-1")
    output = counted("check").stdout
    assert re.search(r"^toy2000  ✓ 1  ✗ 1  \? 0  ", output, re.MULTILINE)
    assert re.search(r"^  ✗ figure-1 *$", output, re.MULTILINE)
    assert "Values are positive" not in output
    assert output.splitlines()[-1].startswith("`skiplab check PAPER` or `check ID` lists claims")


def test_the_whole_scoreboard_fits_a_screen(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    published = Path(skiplab.__file__).parent / "published"  # which the other tests hide
    monkeypatch.setattr("skiplab.reproduction.store.PUBLISHED", published)
    output = cli("check").stdout
    waiting = sum(
        each.waits and not each.ours for run in store.published().runs() for each in judgements(run.verdicts)
    )
    assert f"Of the papers' undecided claims {waiting} only lack runs" in output
    lines = output.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80
    assert {paper.id for paper in CATALOGUE.papers} >= {line.split()[0] for line in lines if "  ✓ " in line}


@pytest.mark.parametrize("command", ["list", "check"])
def test_names_choose_what_is_told(counted: Cli, command: str) -> None:
    for study in ("toy2000/figure-1", "toy2000/figure-2"):
        counted("run", study, "--executor", "serial")
    told = counted(command, "toy2000/figure-2").stdout
    assert "toy2000/figure-2" in told
    assert "toy2000/figure-1" not in told
    assert counted(command, "toy2000").stdout.count("toy2000/figure-") >= 2
    wrong = counted(command, "toy2000/figure-22")
    assert wrong.exit_code == 2
    assert "there is no study 'toy2000/figure-22'" in wrong.stderr


def test_check_all_keeps_runs_apart(counted: Cli) -> None:
    counted("run", "toy2000/figure-1", "--executor", "serial")
    counted("run", "toy2000/figure-1", "--executor", "serial", "--runs", "7")
    assert len(strict(counted("check", "--json").stdout)["claims"]) == 2
    assert len(strict(counted("check", "--json", "--all").stdout)["claims"]) == 4
    output = counted("check", "--all").stdout
    assert output.count("toy2000/figure-1 at quick scale") == 2
    assert output.count("with settings of its own") == 1
