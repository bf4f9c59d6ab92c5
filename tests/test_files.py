"""Files and folders: the old or the new, never half of one; damage is noticed; what killed writers left goes."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from skiplab import files
from skiplab.files import (
    Damaged,
    DamageFound,
    DiskTrouble,
    aside_folder,
    check_writable,
    kind_of,
    leftovers,
    read_bytes,
    read_json,
    read_sealed,
    replacing,
    set_aside,
    sweep,
    write_bytes,
    write_folder,
    write_json,
    write_sealed,
    writing,
)

SOURCE = Path(__file__).parents[1] / "src" / "skiplab"
LONG_AGO = time.time() - leftovers.STALE - 60
A_MOMENT_AGO = time.time() - 2 * leftovers.NEWBORN

with_and_without_exchange = pytest.mark.parametrize("exchange", [True, False])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(name: str) -> Any:
    return lambda folder: (folder / name).touch()


FORBIDDEN = {
    "os": {"rename", "renames", "replace", "remove", "unlink", "rmdir", "removedirs", "truncate"},
    "shutil": {"rmtree", "move"},
    "tempfile": {"mkdtemp", "mkstemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"},
}
METHODS = {"unlink", "rmdir", "rename"}


SUSPICIOUS = re.compile(r"rename|replace\(|remove|unlink|rmdir|truncate|rmtree|shutil|tempfile")


def by_hand(source: str) -> list[str]:
    """What a module does to files by itself: renames, deletions, temporary files."""
    found = []
    for node in ast.walk(ast.parse(source)) if SUSPICIOUS.search(source) else ():
        if isinstance(node, ast.Attribute):
            module = node.value.id if isinstance(node.value, ast.Name) else ""
            if node.attr in FORBIDDEN.get(module, ()) or node.attr in METHODS:
                found.append(f"{node.lineno}: {node.attr}")
        # Path.replace takes one argument, str.replace two, dataclasses.replace names its fields.
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "replace"
        ):
            module = node.func.value.id if isinstance(node.func.value, ast.Name) else ""
            if len(node.args) == 1 and not node.keywords and module != "dataclasses":
                found.append(f"{node.lineno}: replace")
        elif isinstance(node, ast.ImportFrom) and node.module in FORBIDDEN:
            found += [
                f"{node.lineno}: {each.name}" for each in node.names if each.name in FORBIDDEN[node.module]
            ]
    return found


def test_only_one_package_renames_removes_and_makes_temporary_files() -> None:
    """Whoever does so by hand forgets one of the cases below."""
    found = {
        path.relative_to(SOURCE).as_posix(): done
        for path in SOURCE.rglob("*.py")
        if (done := by_hand(path.read_text())) and path.parent != SOURCE / "files"
    }
    assert found == {}


def test_the_rule_above_sees_what_it_should() -> None:
    lines = [
        "os.rename(a, b)", "os.unlink(a)", "path.unlink()", "path.replace(other)", "shutil.rmtree(a)",
        "tempfile.mkdtemp()", "from os import remove", "from shutil import rmtree", "folder.rmdir()",
    ]  # fmt: skip
    assert all(by_hand(line) for line in lines)
    fine = "text.replace('a', 'b'); dataclasses.replace(run, scale=1); replace(run); files.remove(a); names.remove(b)"
    assert by_hand(fine) == []


def test_a_folder_that_takes_no_files_is_named_and_not_what_was_to_be_in_it_for_a_moment() -> None:
    refused = PermissionError(errno.EACCES, "Permission denied", "/there/.skiplab-aside-0a1b2c")
    said = str(DiskTrouble.of(refused, Path("/there/page.html"), "written"))
    assert said.startswith("/there cannot be written (Permission denied); change its permissions")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to(os.devnull)])
def test_what_may_have_no_end_is_not_read(tmp_path: Path, make: Any) -> None:
    make(tmp_path / "file")
    with pytest.raises(Damaged, match=r"file is a (FIFO|link), not a file"):
        read_bytes(tmp_path / "file")


def test_what_is_at_a_place_is_said_without_opening_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path must be short
    assert kind_of(Path("there")) == ""
    Path("file").touch()
    Path("link").symlink_to("nowhere")
    os.mkfifo("pipe")
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind("socket")
    kinds = {"file": "a file", "link": "a link", "pipe": "a FIFO", "socket": "a socket", ".": "a folder"}
    assert {name: kind_of(Path(name)) for name in kinds} == kinds
    assert kind_of(Path(os.devnull)) == "a device"


# Files ------------------------------------------------------------------------------------------------------


def test_a_file_is_replaced_when_all_went_well(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    with replacing(path) as aside:
        aside.write_text("first")
    assert path.read_text() == "first"
    with suppress(RuntimeError), replacing(path) as aside:
        aside.write_text("sec")
        raise RuntimeError("disk full")
    assert path.read_text() == "first"
    assert names(path.parent) == ["file"]
    assert path.stat().st_mode & 0o777 == 0o644


def flipped(content: bytes, bit: int) -> bytes:
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


def test_every_flipped_bit_and_every_cut_of_a_sealed_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_sealed(path, b"weights of a network")
    assert read_sealed(path) == b"weights of a network"
    whole = path.read_bytes()
    for changed in [flipped(whole, bit) for bit in range(8 * len(whole))] + [
        whole[:end] for end in range(len(whole))
    ]:
        path.write_bytes(changed)
        with pytest.raises(Damaged, match=r"file (fails its checksum|is empty)"):
            read_sealed(path)
    path.unlink()
    with pytest.raises(Damaged, match=r"file is missing"):
        read_sealed(path)


def test_a_changed_json_is_noticed_or_says_the_same(tmp_path: Path) -> None:
    content = {"value": 0.1 + 0.2, "name": "é", "rows": [1, None, {"x": float("inf")}]}
    path = tmp_path / "file.json"
    write_json(path, content)
    assert read_json(tmp_path / "file.json", sealed=True) == content
    whole = path.read_bytes()
    assert json.loads(whole).keys() == {"sha256", *content}
    for changed in [flipped(whole, bit) for bit in range(8 * len(whole))] + [
        whole[:end] for end in range(len(whole))
    ]:
        path.write_bytes(changed)
        with suppress(Damaged):
            # Where the word "sha256" itself was hit it is taken for an unsealed file of earlier versions.
            assert read_json(tmp_path / "file.json").items() >= content.items()
        with pytest.raises(Damaged):
            read_json(tmp_path / "file.json", sealed=True)


def test_json_of_earlier_versions_is_read_unless_a_seal_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "old.json").write_text('{"a": 1}')
    assert read_json(tmp_path / "old.json") == {"a": 1}
    with pytest.raises(Damaged, match=r"old\.json has lost its checksum"):
        read_json(tmp_path / "old.json", sealed=True)
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(Damaged, match=r"list\.json holds something else than named values"):
        read_json(tmp_path / "list.json")
    (tmp_path / "deep.json").write_text("[" * 100_000)
    with pytest.raises(Damaged, match=r"deep\.json is cut or changed"):
        read_json(tmp_path / "deep.json")
    write_json(tmp_path / "empty.json", {})
    assert read_json(tmp_path / "empty.json") == {}


def test_setting_aside_keeps_what_was_there_and_says_one_sentence(tmp_path: Path) -> None:
    for content in ("one", "two"):
        (tmp_path / "file").write_text(content)
        with pytest.warns(
            DamageFound, match=r"^file is cut; file was set aside as \.damaged-file-\w{8}, and .*"
        ):
            set_aside(tmp_path / "file", Damaged("file is cut"), "it is made again")
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["one", "two"]
    with pytest.warns(DamageFound):
        set_aside(tmp_path / "file", Damaged("file is cut"), "another process was first")


# Folders ----------------------------------------------------------------------------------------------------


def test_a_folder_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    def crash(folder: Path) -> None:
        (folder / "half").touch()
        raise RuntimeError("disk full")

    with pytest.raises(RuntimeError, match=r"disk full"):
        write_folder(tmp_path / "room" / "target", crash)
    assert names(tmp_path / "room") == []


@with_and_without_exchange
def test_a_folder_is_replaced_whole(tmp_path: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not exchange:
        monkeypatch.setattr(writing, "_exchanged", lambda one, other: False)
    target = tmp_path / "room" / "target"
    write_folder(target, make("old"))
    write_folder(target, make("new"))
    assert [path.name for path in target.parent.rglob("*")] == ["target", "new"]


def test_the_first_of_two_writers_stays(tmp_path: Path) -> None:
    def write(folder: Path) -> None:
        (folder / "second").touch()
        # Another process finishes the same folder meanwhile.
        (tmp_path / "aside").mkdir()
        (tmp_path / "aside" / "first").touch()
        (tmp_path / "aside").rename(tmp_path / "target")

    real, calls = os.path.lexists, []

    def not_yet(path: Path) -> bool:
        calls.append(path)
        return len(calls) > 1 and real(path)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os.path, "lexists", not_yet)
        write_folder(tmp_path / "target", write)
    assert calls[0] == tmp_path / "target"
    assert names(tmp_path / "target") == ["first"]


@pytest.mark.parametrize("rename", [1, 2, 3])
@with_and_without_exchange
def test_stopped_at_any_rename_the_old_or_the_new_is_there(
    tmp_path: Path, exchange: bool, rename: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C or a full disk would, at the first, second or third rename of a replacement."""
    if not exchange:
        monkeypatch.setattr(writing, "_exchanged", lambda one, other: False)
    write_folder(tmp_path / "target", make("old"))
    real, calls = os.rename, []

    def stop(source: Any, target: Any) -> None:
        calls.append(source)
        if len(calls) == rename:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(writing.os, "rename", stop)
    try:
        write_folder(tmp_path / "target", make("new"))
    except KeyboardInterrupt:
        assert not exchange
    assert names(tmp_path) == ["target"]
    assert names(tmp_path / "target") in (["old"], ["new"])


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two folders in one step")
@pytest.mark.parametrize("moment", ["_exchanged", "remove"])
def test_killed_before_or_after_the_exchange_the_old_or_the_new_is_there(tmp_path: Path, moment: str) -> None:
    write_folder(tmp_path / "target", make("old"))
    module = "writing" if moment == "_exchanged" else "leftovers"
    script = (
        "import os, sys; from pathlib import Path; from skiplab import files\n"
        f"sys.modules['skiplab.files.{module}'].{moment} = lambda *_: os._exit(9)\n"
        "files.write_folder(Path(sys.argv[1]), lambda folder: (folder / 'new').touch())"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / "target")], check=False)
    assert killed.returncode == 9
    assert names(tmp_path / "target") == ["old" if moment == "_exchanged" else "new"]
    (left,) = tmp_path.glob(".skiplab-aside-*")
    os.utime(left, (A_MOMENT_AGO, A_MOMENT_AGO))
    assert sweep(tmp_path) == 1
    assert names(tmp_path) == ["target"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges two folders in one step")
def test_a_reader_always_finds_a_folder_that_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "target"
    write_folder(target, make("content"))
    gone, over = [], threading.Event()

    def look() -> None:
        while not over.is_set():
            if not (target / "content").exists():
                gone.append(time.time())

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(100):
        write_folder(target, make("content"))
    over.set()
    reader.join()
    assert gone == []


KILLED = """
import sys, time; from pathlib import Path; from skiplab import files
def write(folder):
    (folder / "half").touch(); print("writing", flush=True); time.sleep(60)
if sys.argv[2] == "folder":
    files.write_folder(Path(sys.argv[1]) / "target", write)
with files.replacing(Path(sys.argv[1]) / "target") as aside:
    print("writing", flush=True); time.sleep(60)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_a_killed_writer_left_goes_at_once_and_what_a_living_one_writes_stays(
    tmp_path: Path, kind: str
) -> None:
    """For real: a process that writes is killed, another one lives."""
    command = [sys.executable, "-c", KILLED, str(tmp_path), kind]
    two = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for writer in two:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "writing\n"
        with writer.stdout:
            pass
    killed, living = two
    killed.kill()
    killed.wait()
    left = list(tmp_path.glob(".skiplab-aside-*"))
    assert len(left) == 2
    assert sweep(tmp_path) == 0  # what is this young may belong to a writer that has not got its lock yet
    for path in left:
        os.utime(path, (A_MOMENT_AGO, A_MOMENT_AGO))
    assert sweep(tmp_path) == 1
    assert len(list(tmp_path.glob(".skiplab-aside-*"))) == 1
    living.terminate()
    living.wait()
    assert sweep(tmp_path) == 1
    assert names(tmp_path) == []


def test_the_first_write_into_a_folder_sweeps_it_and_touches_nothing_else(tmp_path: Path) -> None:
    for name in (".skiplab-aside-killed", ".aside-mine", ".damaged-key-12345678", "kept"):
        (tmp_path / name / "inside").mkdir(parents=True)
        os.utime(tmp_path / name, (LONG_AGO, LONG_AGO))
    (tmp_path / ".skiplab-aside-link").symlink_to(tmp_path / "kept")
    write_bytes(tmp_path / "file", b"new")
    assert names(tmp_path) == [".aside-mine", ".damaged-key-12345678", ".skiplab-aside-link", "file", "kept"]


def test_where_there_are_no_locks_only_what_is_a_day_old_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leftovers, "fcntl", None)
    for name, when in ((".skiplab-aside-old", LONG_AGO), (".skiplab-aside-new", A_MOMENT_AGO)):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (when, when))
    assert sweep(tmp_path) == 1
    assert names(tmp_path) == [".skiplab-aside-new"]


def test_killed_between_two_renames_the_old_folder_is_put_back(tmp_path: Path) -> None:
    """Where the system cannot exchange two folders, the first rename leaves the place empty."""
    write_folder(tmp_path / "target", make("old"))
    script = (
        "import os, sys; from pathlib import Path; from skiplab import files\n"
        "module = sys.modules['skiplab.files.writing']\n"
        "module._exchanged = lambda *_: False; module._put = lambda *_: os._exit(9)\n"
        "files.write_folder(Path(sys.argv[1]), lambda folder: (folder / 'new').touch())"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / "target")], check=False)
    assert killed.returncode == 9
    assert not (tmp_path / "target").exists()
    for left in tmp_path.iterdir():
        os.utime(left, (A_MOMENT_AGO, A_MOMENT_AGO))
    assert sweep(tmp_path) == 2
    assert names(tmp_path) == ["target"]
    assert names(tmp_path / "target") == ["old"]


@with_and_without_exchange
def test_what_a_user_put_into_a_folder_stays_when_it_is_replaced(
    tmp_path: Path, exchange: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not exchange:
        monkeypatch.setattr(writing, "_exchanged", lambda one, other: False)
    target = tmp_path / "target"
    write_folder(target, make("ours"))
    (target / "notes.txt").write_text("mine")
    (target / "old picture").touch()
    write_folder(target, make("ours"), ours=("ours", "old picture"))
    assert names(target) == ["notes.txt", "ours"]
    assert (target / "notes.txt").read_text() == "mine"
    write_folder(target, make("other"), replace=False)
    assert names(target) == ["notes.txt", "ours"]
    assert names(tmp_path) == ["target"]


# Disks ------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_files() -> Iterator[None]:
    """A limit on the size of files, which is felt as a full disk is: in the middle of a write."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    signal.signal(signal.SIGXFSZ, handler)


SAID = r"^.*target.* cannot be written \(File too large\); raise the limit .* then give the same command again\.$"


def test_a_disk_that_is_full_midway_leaves_the_old_and_says_a_sentence(
    tmp_path: Path, small_files: None
) -> None:
    target = tmp_path / "target"
    write_bytes(target, b"old")
    with pytest.raises(DiskTrouble, match=SAID):
        write_bytes(target, bytes(3000))
    assert target.read_bytes() == b"old"
    folder = tmp_path / "target folder"
    write_folder(folder, lambda place: write_bytes(place / "part", b"old"))
    with pytest.raises(DiskTrouble, match=SAID):
        write_folder(folder, lambda place: (place / "part").write_bytes(bytes(3000)))
    assert (folder / "part").read_bytes() == b"old"
    assert names(tmp_path) == ["target", "target folder"]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EROFS, "change its permissions"),
        (errno.ENAMETOOLONG, "name another"),
    ],
)
def test_every_refusal_of_a_disk_names_path_and_remedy(tmp_path: Path, number: int, remedy: str) -> None:
    with pytest.raises(DiskTrouble, match=rf"^{tmp_path}/x cannot be written \(.*\); {remedy}") as caught:  # noqa: SIM117
        with replacing(tmp_path / "x"):
            raise OSError(number, os.strerror(number))
    assert caught.value.errno == number
    assert names(tmp_path) == []


def test_a_place_that_takes_no_files_is_known_beforehand(tmp_path: Path) -> None:
    check_writable(tmp_path / "new" / "store")
    assert names(tmp_path / "new" / "store") == []
    (tmp_path / "file").touch()
    with pytest.raises(
        DiskTrouble, match=r"file/store cannot be written \(Not a directory\); name another place"
    ):
        check_writable(tmp_path / "file" / "store")


def test_what_cannot_be_read_now_is_not_called_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(Damaged, match="cannot be read"):
        files.read_bytes(tmp_path / "folder")

    def busy(path: Path) -> bytes:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(Path, "read_bytes", busy)
    with pytest.raises(DiskTrouble, match=r"whole cannot be read \(Too many open files\); raise the limit"):
        files.read_bytes(tmp_path / "whole")


def test_bytes_reach_the_disk_before_they_take_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the order of calls can be seen here: no test cuts the power."""
    done: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{handle}"))
        real(handle)

    monkeypatch.setattr(writing, "DURABLE", True)
    monkeypatch.setattr(os, "fsync", fsync)
    write_bytes(tmp_path / "file", b"content")
    first, second = done
    assert Path(first).name.startswith(".skiplab-aside-")
    assert second == str(tmp_path)
    done.clear()
    write_folder(tmp_path / "folder", lambda place: write_bytes(place / "part", b"content"))
    first, second = done
    assert Path(first).name == "part"
    assert Path(first).parent.name.startswith(".skiplab-aside-")
    assert second == str(tmp_path)


def test_an_aside_folder_is_gone_after_a_failure(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), aside_folder(tmp_path) as folder:  # noqa: PT012
        (folder / "half").touch()
        raise RuntimeError("stopped")
    assert names(tmp_path) == []


def test_removing_never_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "work").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    files.remove(tmp_path / "link")
    files.remove(tmp_path / "nothing")
    assert names(tmp_path) == ["theirs"]
    assert names(tmp_path / "theirs") == ["work"]


def test_a_link_with_our_name_leads_a_sweep_nowhere(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "thesis.tex").write_text("years of work")
    store = tmp_path / "store"
    store.mkdir()
    for name in (".skiplab-old-x", ".skiplab-aside-x"):
        (store / name).symlink_to(tmp_path / "docs")
        os.utime(store / name, (LONG_AGO, LONG_AGO), follow_symlinks=False)
    assert sweep(store) == 0
    assert names(store) == [".skiplab-aside-x", ".skiplab-old-x"]
    assert names(tmp_path / "docs") == ["thesis.tex"]


def test_a_folder_that_a_writer_holds_stays_however_old(tmp_path: Path) -> None:
    with files.aside_folder(tmp_path) as folder:
        (folder / "result").touch()
        os.utime(folder, (LONG_AGO, LONG_AGO))
        code = "import sys, pathlib, skiplab.files as f; print(f.sweep(pathlib.Path(sys.argv[1])))"
        words = [sys.executable, "-c", code, str(tmp_path)]
        swept = subprocess.run(words, capture_output=True, text=True, check=True)
        assert swept.stdout == "0\n"
        assert (folder / "result").exists()


@pytest.mark.parametrize("stop", [KeyboardInterrupt, PermissionError])
def test_nothing_that_stops_us_loses_what_a_user_put_into_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: type[BaseException]
) -> None:
    target = tmp_path / "run"
    target.mkdir()
    for name in ("run.json", "notes.txt"):
        (target / name).write_text("old")
    renames = [os.rename, os.replace]
    for number in range(4):
        count = iter(range(10))

        def stopped(*paths: Any, number: int = number, count: Any = count, **more: Any) -> None:
            if next(count) == number:
                raise stop(13, "no")
            renames[1](*paths, **more)

        for name in ("rename", "replace"):
            monkeypatch.setattr(os, name, stopped)
        with suppress(stop, DiskTrouble):
            files.write_folder(
                target, lambda folder: write_bytes(folder / "run.json", b"new"), ours=("run.json",)
            )
        monkeypatch.undo()
        assert (target / "notes.txt").read_text() == "old"
        assert (target / "run.json").read_text() in ("old", "new")
    files.write_folder(target, lambda folder: write_bytes(folder / "run.json", b"new"), ours=("run.json",))
    assert ((target / "run.json").read_text(), (target / "notes.txt").read_text()) == ("new", "old")
