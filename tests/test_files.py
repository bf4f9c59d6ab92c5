"""Files and folders: the old or the new, never half of one; damage is noticed; leftovers go after a day."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from skiplab import files
from skiplab.files import (
    Damaged,
    DamageFound,
    read_json,
    read_sealed,
    replacing,
    set_aside,
    write_folder,
    write_json,
    write_sealed,
)

SOURCE = Path(__file__).parents[1] / "src" / "skiplab"
LONG_AGO = time.time() - files.STALE - 60

with_and_without_exchange = pytest.mark.parametrize("exchange", [True, False])


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make(name: str) -> Any:
    return lambda folder: (folder / name).touch()


def test_only_one_module_replaces_and_removes() -> None:
    """Whoever renames or deletes by hand forgets one of the cases below."""
    by_hand = re.compile(r"os\.(rename|replace|renames|removedirs)\b|rmtree|shutil\.move|\.rename\(")
    found = [
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if by_hand.search(path.read_text())
    ]
    assert found == ["files.py"]


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


def test_what_a_killed_writer_left_of_a_file_goes_after_a_day(tmp_path: Path) -> None:
    for name in (".file-abcd1234", ".file-efgh5678", ".other-abcd1234"):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (LONG_AGO, LONG_AGO))
    (tmp_path / ".file-efgh5678").touch()
    write_sealed(tmp_path / "file", b"new")
    assert names(tmp_path) == [".file-efgh5678", ".other-abcd1234", "file"]


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
        monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
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

    real_exists = Path.exists
    calls: list[Path] = []

    def exists_not_yet(path: Path, **options: Any) -> bool:
        calls.append(path)
        return len(calls) > 1 and real_exists(path, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "exists", exists_not_yet)
        write_folder(tmp_path / "target", write)
    assert names(tmp_path / "target") == ["first"]


@pytest.mark.parametrize("rename", [1, 2, 3])
@with_and_without_exchange
def test_stopped_at_any_rename_the_old_or_the_new_is_there(
    tmp_path: Path, exchange: bool, rename: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C or a full disk would, at the first, second or third rename of a replacement."""
    if not exchange:
        monkeypatch.setattr(files, "_exchanged", lambda one, other: False)
    write_folder(tmp_path / "target", make("old"))
    real, calls = os.rename, []

    def stop(source: Any, target: Any) -> None:
        calls.append(source)
        if len(calls) == rename:
            raise KeyboardInterrupt
        real(source, target)

    monkeypatch.setattr(files.os, "rename", stop)
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
    script = (
        "import os, sys; from pathlib import Path; from skiplab import files\n"
        f"files.{moment} = lambda *_: os._exit(9)\n"
        "files.write_folder(Path(sys.argv[1]), lambda folder: (folder / 'new').touch())"
    )
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path / "target")], check=False)
    assert killed.returncode == 9
    assert names(tmp_path / "target") == ["old" if moment == "_exchanged" else "new"]
    (left,) = tmp_path.glob(".aside-*")
    os.utime(left, (LONG_AGO, LONG_AGO))
    write_folder(tmp_path / "target", make("newest"))
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
    for _ in range(300):
        write_folder(target, make("content"))
    over.set()
    reader.join()
    assert gone == []


def test_what_killed_writers_left_goes_after_a_day_and_nothing_else(tmp_path: Path) -> None:
    for name in (".aside-killed", ".old-killed", ".damaged-key-12345678", "kept", ".aside-at-work"):
        (tmp_path / name / "inside").mkdir(parents=True)
        os.utime(tmp_path / name, (LONG_AGO, LONG_AGO))
    os.utime(tmp_path / ".aside-at-work")
    write_folder(tmp_path / "target", make("new"))
    assert names(tmp_path) == [".aside-at-work", ".damaged-key-12345678", "kept", "target"]


def test_removing_never_follows_a_link(tmp_path: Path) -> None:
    (tmp_path / "theirs" / "work").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "theirs")
    files.remove(tmp_path / "link")
    files.remove(tmp_path / "nothing")
    assert names(tmp_path) == ["theirs"]
    assert names(tmp_path / "theirs") == ["work"]
