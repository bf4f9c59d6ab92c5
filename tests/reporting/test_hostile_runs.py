"""Runs that somebody edited or sent: what reaches a page, a terminal or a spreadsheet only shows."""

from __future__ import annotations

import csv
import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from skiplab.checks import printable
from skiplab.files import Damaged, DamageFound
from skiplab.reporting import site
from skiplab.reporting.downloads import only_draws, plain_cell, write_csv
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.validation import check_record

VERDICT = {
    "study": "toy2000/figure-1", "claim": "positive", "condition": "all", "verdict": "holds", "statistic": 1.0,
    "low": 0.5, "high": 1.5, "margin": 0.0, "p": 0.01, "p_adjusted": 0.02, "level": 0.05, "paper_value": None,
    "runs": 6, "scale": "quick", "kind": "greater", "text": "Values are positive.", "means": [1.0],
}  # fmt: skip
RUN = {
    "study": "toy2000/figure-1", "scale": "quick", "name": "quick", "settings": {"runs": 6}, "deviations": {},
    "left_out": [], "verdicts": [VERDICT], "seconds": 1.5,
    "trials": [{"key": "0a", "trial": "counted/draw", "version": 1, "label": "seed 0", "stage": "seeds"}],
    "provenance": {"finished": "2026-11-17T00:00:00+00:00", "seconds": 1.0, "trials_seconds": 2.0},
}  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    """The run with one value changed, found by its path."""
    content = json.loads(json.dumps(RUN))
    *way, last = path.split(".")
    place: Any = content
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[last] = value
    return content


def test_the_run_behind_the_variants_is_taken() -> None:
    assert StudyRun.of(json.loads(json.dumps(RUN)), Path("run.json")).seconds == 1.5
    later = changed("added_later", 1) | {"verdicts": [VERDICT | {"added_later": "x"}]}
    assert StudyRun.of(later, Path("run.json")).verdicts[0].runs == 6


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seconds", "many"), ("seconds", None), ("seconds", float("nan")), ("seconds", True), ("seconds", -1),
        ("study", "../../etc/passwd"), ("study", 3), ("scale", "huge"), ("scale", ["quick"]), ("name", "a/b"),
        ("settings", []), ("deviations", {"runs": 3}), ("deviations", {"runs": {"used": 3}}),
        ("left_out", ["cifar10"]), ("left_out", [{"part": 1, "remedy": "x"}]), ("trials", None), ("trials", [3]),
        ("trials.0.key", "../x"),
        ("trials.0.version", "1"), ("trials.0.label", None), ("provenance", None),
        ("provenance.finished", "yesterday"),
        ("provenance.finished", 2026), ("provenance.trials_seconds", "2"), ("provenance.trials_devices", "CPU"),
        ("verdicts", {}), ("verdicts.0.statistic", "1.0"), ("verdicts.0.low", [1]), ("verdicts.0.runs", "6"),
        ("verdicts.0.runs", 6.5), ("verdicts.0.means", "1"), ("verdicts.0.means", ["1"]), ("verdicts.0.text", 5),
        ("verdicts.0.headline", "yes"), ("verdicts.0.condition", None), ("verdicts.0.statistic", 10**400),
        ("verdicts.0.needs", "12"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_kind_is_named_before_anyone_relies_on_it(path: str, value: Any) -> None:
    with pytest.raises(Damaged, match=r"^run\.json is no record of a run \(.+\)$") as caught:
        StudyRun.of(changed(path, value), Path("run.json"))
    # Numbers beyond any float have no name of their own.
    words = (path.rpartition(".")[2], "deviation", "left out", "a trial", "verdict", "OverflowError")
    assert any(word in str(caught.value) for word in words)


@pytest.mark.parametrize(
    "record", [{"seconds": -1}, {"seconds": "3", "device": "CPU", "source": "a"}, {"seconds": 1, "device": 2}]
)
def test_a_record_of_the_wrong_kind_is_refused(record: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"a record"):
        check_record(record)


CODES = "\x1b[2J\x1b]0;owned\x07 \u202egnp.exe \x9b31m"


@pytest.mark.parametrize(
    "path", ["verdicts.0.condition", "verdicts.0.text", "trials.0.label", "settings.\x1b[31m"]
)
def test_no_escape_code_of_a_file_reaches_a_terminal(path: str) -> None:
    run = StudyRun.of(changed(path, CODES), Path("run.json"))
    text = json.dumps(run.content(), ensure_ascii=False)
    assert not any(code in text for code in ("\x1b", "\x07", "\u202e", "\x9b"))
    assert r"\x1b[2J" in run.content().__repr__().replace("\\\\", "\\")


def test_what_is_printable_stays_as_it_is() -> None:
    for text in ("plain", "σ = 0.5 ± 1 ✓ 漢字 é", "two\nlines\tand a tab", "a\u00a0space\u202fof its own"):
        assert printable(text) == text
    assert printable("\x1b[31mred") == r"\x1b[31mred"
    assert printable("\u202e\ud800") == r"\u202e\ud800"


# Spreadsheets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        ("=LINK(x)", "'=LINK(x)"), ("+1+1", "'+1+1"), ("-2+3", "'-2+3"), ("@SUM(A1)", "'@SUM(A1)"), ("\t=1", "'\t=1"),
        ("\r=1", "'\r=1"), ("-0.5", "-0.5"), ("+3", "+3"), ("-inf", "-inf"), ("plain", "plain"), (-3, -3),
        ("", ""), (None, None),
    ],
)  # fmt: skip
def test_text_like_a_formula_is_only_shown(cell: Any, shown: Any) -> None:
    assert plain_cell(cell) == shown


def test_a_table_for_spreadsheets_keeps_its_numbers(tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "=name": ["=1", "b", None],
            "value": [-1.5, 2.0, float("nan")],
            "kind": pd.Categorical(["@x", "y", "y"]),
            "count": [-1, 0, 1],
        }
    )
    write_csv(table, tmp_path / "table.csv")
    with (tmp_path / "table.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["'=name", "value", "kind", "count"]
    assert rows[1] == ["'=1", "-1.5", "'@x", "-1"]
    assert rows[3] == ["", "", "y", "1"]
    assert table.columns[0] == "=name"


# Drawings ---------------------------------------------------------------------------------------------------

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
HOSTILE = {
    "script": "<script>alert(1)</script>",
    "script of another space": '<s:script xmlns:s="http://www.w3.org/2000/svg">alert(1)</s:script>',
    "handler": '<g onload="alert(1)"/>',
    "link": '<a xlink:href="javascript:alert(1)"><text>x</text></a>',
    "page within": '<foreignObject><body xmlns="http://www.w3.org/1999/xhtml"/></foreignObject>',
    "picture from elsewhere": '<image href="http://example.com/x.png"/>',
    "picture that is a drawing": '<image href="data:image/svg+xml;base64,PHN2Zy8+"/>',
    "part of another file": '<use xlink:href="http://example.com/x.svg#y"/>',
    "style from elsewhere": "<style>@import 'http://example.com/x.css';</style>",
    "font from elsewhere": "<style>@font-face {src: url(http://example.com/x)}</style>",
    "fill from elsewhere": '<path style="fill: url(http://example.com/x)"/>',
    "animation": '<set attributeName="href" to="javascript:alert(1)"/>',
    "frame": '<iframe src="http://example.com"/>',
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_drawing_that_does_more_than_draw_is_not_given_away(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_text(f"{HEAD}{HOSTILE[name]}</svg>")
    assert not only_draws(tmp_path / "x.svg")


@pytest.mark.parametrize(
    "content",
    [
        b"", b"no xml", b'<!DOCTYPE svg [<!ENTITY a "b">]><svg>&a;</svg>', b"<svg>", b"\xff\xfe<svg/>", b"<html/>",
        b'<?xml-stylesheet href="x.css"?><svg/>', b'<?xml version="1.0" encoding="no-such"?><svg/>',
    ],
)  # fmt: skip
def test_what_is_no_plain_drawing_is_not_given_away(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x.svg").write_bytes(content)
    assert not only_draws(tmp_path / "x.svg")


def test_our_own_drawings_are(tmp_path: Path) -> None:
    from skiplab.figures.style import new_figure, save

    figure, axes = new_figure()
    axes[0, 0].imshow([[0.0, 1.0], [1.0, 0.0]])
    axes[0, 0].plot([0, 1], label="$x^2$ <&>")
    axes[0, 0].fill_between([0, 1], [1, 0], hatch="//")
    axes[0, 0].legend()
    save(figure, tmp_path)
    assert only_draws(tmp_path / "figure.svg")


def test_a_report_leaves_such_a_drawing_out(fabricated: Any, tmp_path: Path) -> None:
    """The picture of a run that came in a pack."""
    run = next(run for run in fabricated.runs.values() if run.pictures and not run.published)
    root = run.folder.parents[3]
    shutil.copytree(root, tmp_path / "store")
    run = dataclasses.replace(run, folder=tmp_path / "store" / run.folder.relative_to(root))
    (run.folder / "figure.svg").write_text(f"{HEAD}<script>alert(1)</script></svg>")
    with pytest.warns(DamageFound, match=r"figure\.svg holds more than a drawing and is left out; remove it"):
        site.build(fabricated.catalogue, {run.study: run}, tmp_path / "report")
    page = tmp_path / "report/studies" / run.study
    assert not (page / "figure.svg").exists()
    assert "figure.svg" not in (page / "index.html").read_text()
