"""A report's folder: what is not ours is never touched, and a report that fails changes nothing."""

from __future__ import annotations

import errno
import os
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skiplab.checks import Refused, SkiplabError
from skiplab.reporting import placing, site

Fabricated = Any  # conftest.Fabricated; test files do not import one another
Write = Callable[[Path], None]


def writer(*names: str, content: str = "new") -> Write:
    """A small report of the named files."""

    def write(folder: Path) -> None:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(f"{content} {name}")

    return write


PAGE = "studies/orhan2017/figure-7/index.html"
SMALL = writer("index.html", "assets/site.css", PAGE)


def snapshot(root: Path) -> dict[str, object]:
    """Every path below a folder with its kind and content, links not followed."""
    seen: dict[str, object] = {}
    for path in sorted(root.rglob("*")):
        mode = path.lstat().st_mode
        content = (
            path.read_bytes() if stat.S_ISREG(mode) else os.readlink(path) if stat.S_ISLNK(mode) else None
        )
        seen[str(path)] = (stat.S_IFMT(mode), content)
    return seen


def in_the_way(kind: str, out: Path) -> None:
    """Put something that is no report where the report should go."""
    elsewhere = out.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "thesis.tex").write_text("years of work")
    if kind == "regular file":
        out.write_text("mine")
    elif kind == "FIFO":
        os.mkfifo(out)
    elif kind == "device":
        try:
            os.mknod(out, stat.S_IFCHR | 0o600, os.makedev(1, 3))  # as /dev/null
        except PermissionError:
            pytest.skip("only root makes devices")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(out))
    elif kind == "folder with other things":
        out.mkdir()
        (out / "thesis.tex").write_text("years of work")
    elif kind == "folder with a marker of another's":
        out.mkdir()
        (out / placing.MARKER).write_text("index.html\n")
    elif kind == "folder with a link for a marker":
        placing.place(elsewhere.parent / "report", SMALL)
        out.mkdir()
        (out / placing.MARKER).symlink_to(elsewhere.parent / "report" / placing.MARKER)
    else:
        target = {
            "link to a folder": "elsewhere",
            "link to a file": "elsewhere/thesis.tex",
            "broken link": "gone",
        }
        if kind == "link to a report":
            placing.place(elsewhere.parent / "report", SMALL)
        out.symlink_to(elsewhere.parent / target.get(kind, "report"))


@pytest.mark.parametrize(
    "kind",
    [
        "regular file", "FIFO", "device", "socket", "link to a folder", "link to a file",
        "broken link", "link to a report", "folder with other things", "folder with a marker of another's",
        "folder with a link for a marker",
    ],
)  # fmt: skip
def test_what_is_no_report_is_refused_and_stays(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    in_the_way(kind, Path("out"))
    before = snapshot(tmp_path)

    def never(folder: Path) -> None:
        raise AssertionError("it must be refused before anything is written")

    with pytest.raises(
        Refused,
        match=r"out (is a (file|FIFO|device|socket|link)|holds something).*; choose a new or an empty folder",
    ):
        placing.place(Path("out"), never)
    assert snapshot(tmp_path) == before


def test_a_new_and_an_empty_folder_are_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir(mode=0o700)
    placing.place(tmp_path / "empty", SMALL)
    placing.place(tmp_path / "deep" / "new", SMALL)
    assert (tmp_path / "empty" / PAGE).exists()
    assert (tmp_path / "deep" / "new" / PAGE).exists()
    assert stat.S_IMODE((tmp_path / "empty").stat().st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["deep", "empty"]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    placing.place(Path(), SMALL)
    assert (tmp_path / "here" / PAGE).exists()
    (tmp_path / "way").symlink_to(tmp_path / "deep")  # a way over a link is the user's own
    placing.place(tmp_path / "way" / "new", SMALL)


def test_a_user_s_files_stay_and_ours_are_replaced(tmp_path: Path) -> None:
    out = tmp_path / "out"
    placing.place(out, SMALL)
    mine = [
        out / "notes.txt",
        out / PAGE.replace("index.html", "remark.md"),
        out / "assets" / "deep" / "own.css",
    ]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    (out / "link").symlink_to(tmp_path)
    placing.place(out, writer("index.html", "studies/orhan2018/figure-1/index.html", content="newer"))
    assert [path.read_text() for path in mine] == ["mine"] * 3
    assert (out / "link").is_symlink()
    assert (out / "index.html").read_text() == "newer index.html"
    assert not (out / PAGE).exists()
    assert not (out / "assets" / "site.css").exists()
    listed = (out / placing.MARKER).read_text().splitlines()
    assert listed == [placing.LISTED, "index.html", "studies/orhan2018/figure-1/index.html"]
    placing.place(out, writer("index.html"))
    assert not (out / "studies" / "orhan2018").exists()  # emptied folders of ours go
    assert [path.read_text() for path in mine] == ["mine"] * 3


def test_a_report_of_before_is_known_by_its_names(tmp_path: Path) -> None:
    out = tmp_path / "out"
    writer("index.html", "scoreboard.csv", PAGE, "assets/icon.svg", "notes.html", "studies/mine.txt")(out)
    (out / placing.MARKER).write_text(f"{placing.UNLISTED}\n")
    placing.place(out, writer("index.html", content="newer"))
    left = sorted(path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    assert left == [placing.MARKER, "index.html", "notes.html", "studies/mine.txt"]


@pytest.mark.parametrize(
    "kind", ["file of the user's", "link", "folder", "link on the way", "file on the way"]
)
def test_a_place_that_is_taken_is_refused_before_anything_changes(kind: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    placing.place(out, SMALL)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "figure-7").mkdir()
    (tmp_path / "elsewhere" / "figure-7" / "index.html").write_text("mine")
    if kind == "file of the user's":
        (out / "scoreboard.csv").write_text("mine")
    elif kind == "link":
        (out / "scoreboard.csv").symlink_to(tmp_path / "elsewhere" / "figure-7" / "index.html")
    elif kind == "folder":
        (out / "scoreboard.csv").mkdir()
    else:
        (out / PAGE).unlink()
        (out / PAGE).parent.rmdir()
        (out / "studies" / "orhan2017").rmdir()
        if kind == "link on the way":
            (out / "studies" / "orhan2017").symlink_to(tmp_path / "elsewhere")
        else:
            (out / "studies" / "orhan2017").write_text("mine")
    before = snapshot(tmp_path)
    with pytest.raises(
        Refused, match=r"out/(scoreboard\.csv|studies/orhan2017) (was|is) not .*; move it away or"
    ):
        placing.place(out, writer("index.html", "scoreboard.csv", PAGE, content="newer"))
    assert snapshot(tmp_path) == before


def test_a_list_cannot_name_what_a_report_has_not(tmp_path: Path) -> None:
    out = tmp_path / "out"
    placing.place(out, SMALL)
    (tmp_path / "outside").write_text("mine")
    (out / ".hidden").write_text("mine")
    evil = [
        "../outside",
        str(tmp_path / "outside"),
        ".hidden",
        "studies/../../outside",
        "",
        "assets/../../outside",
    ]
    (out / placing.MARKER).write_text("\n".join([placing.LISTED, "index.html", *evil]))
    assert placing.earlier(out) == {"index.html"}
    (out / PAGE).unlink()
    (out / "assets" / "site.css").unlink()
    placing.place(out, SMALL)
    assert (tmp_path / "outside").read_text() == (out / ".hidden").read_text() == "mine"


def test_a_link_beside_the_list_is_not_written_through(tmp_path: Path) -> None:
    out = tmp_path / "out"
    placing.place(out, SMALL)
    (tmp_path / "outside").write_text("mine")
    for name in (f"{placing.MARKER}~", f"{placing.MARKER}-", "index.html~"):
        (out / name).symlink_to(tmp_path / "outside")
    placing.place(out, SMALL)
    assert (tmp_path / "outside").read_text() == "mine"


@pytest.mark.parametrize("existing", [True, False])
def test_a_report_that_fails_midway_changes_nothing(
    fabricated: Fabricated, tmp_path: Path, existing: bool
) -> None:
    out = tmp_path / "out"
    if existing:
        site.build(fabricated.catalogue, fabricated.runs, out)
        (out / "notes.txt").write_text("mine")
    before = snapshot(tmp_path)
    heard: list[str] = []

    def stop(study: str) -> None:
        heard.append(study)
        if len(heard) == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        site.build(fabricated.catalogue, fabricated.runs, out, tell=stop)
    assert snapshot(tmp_path) == before


def test_a_full_disk_is_a_sentence(tmp_path: Path) -> None:
    placing.place(tmp_path / "out", SMALL)
    before = snapshot(tmp_path)

    def write(folder: Path) -> None:
        SMALL(folder)
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(
        SkiplabError, match=r"into .*out \(No space left on device\); free some space or choose"
    ):
        placing.place(tmp_path / "out", write)
    assert snapshot(tmp_path) == before


def test_a_report_killed_while_it_is_put_into_place_is_mended_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    placing.place(out, SMALL)
    newer = writer("index.html", "scoreboard.csv", "studies/orhan2018/figure-1/index.html", content="newer")
    replace = os.replace
    for dies_at in range(1, 5):
        calls: list[object] = []

        def dying(source: Path, target: Path, calls: list[object] = calls, at: int = dies_at) -> None:
            calls.append(target)
            if len(calls) > at:
                raise KeyboardInterrupt
            replace(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", dying)
            # The list of the folder aside is the first that is replaced.
            with pytest.raises(KeyboardInterrupt):
                placing.place(out, newer)
        placing.place(out, SMALL)
        left = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
        assert left == {placing.MARKER, "index.html", "assets/site.css", PAGE}


def test_a_real_report_lists_all_its_files(fabricated: Fabricated, tmp_path: Path) -> None:
    out = site.build(fabricated.catalogue, fabricated.runs, tmp_path / "out").parent
    there = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
    assert placing.earlier(out) == there - {placing.MARKER}
