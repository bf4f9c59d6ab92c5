"""Packing: small pieces, damage noticed, unpacking twice the same as once."""

from __future__ import annotations

import hashlib
import io
import itertools
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tracemalloc
from collections import namedtuple
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from counted_studies import COUNT, counts

from skiplab.checks import Refused, SkiplabError
from skiplab.files import DamageFound, read_json, write_json
from skiplab.reproduction import packing, pieces
from skiplab.reproduction.packing import PackDamaged, pack, unpack
from skiplab.reproduction.runner import Options, drawn, run_study
from skiplab.reproduction.store import Store

SERIAL = Options(executor="serial")


def files(store: Store) -> dict[str, bytes]:
    return {
        path.relative_to(store.root).as_posix(): path.read_bytes()
        for path in store.root.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def full(store: Store, marks: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with a run, whose pack needs several pieces."""
    monkeypatch.setattr(packing, "PIECE", 20_000)
    drawn(COUNT, run_study(COUNT, store, options=SERIAL))
    return store


def test_a_piece_holds_16_mebibytes() -> None:
    assert packing.PIECE == 16 * 1024 * 1024


def test_pieces_carry_a_store(full: Store, tmp_path: Path, marks: Path) -> None:
    aside = full.root / "trials" / ".aside-killed"
    aside.mkdir()
    (aside / "table.parquet").touch()
    file = tmp_path / "carried" / "results [1]"
    pieces = pack(full, file)
    assert [piece.name for piece in pieces[:2]] == ["results [1].000", "results [1].001"]
    assert max(piece.stat().st_size for piece in pieces) == 20_000
    other = Store(tmp_path / "other")
    assert unpack(other, file) == (7, 0)
    expected = {name: content for name, content in files(full).items() if ".aside" not in name}
    assert files(other) == expected
    run_study(COUNT, other, options=SERIAL)
    assert set(counts(marks).values()) == {1}


def test_unpacking_twice_changes_nothing(full: Store, tmp_path: Path) -> None:
    pack(full, tmp_path / "pack")
    other = Store(tmp_path / "other")
    assert unpack(other, tmp_path / "pack") == (7, 0)
    before = files(other)
    assert unpack(other, tmp_path / "pack") == (0, 7)
    assert files(other) == before


def test_the_newer_run_stays(full: Store, tmp_path: Path) -> None:
    path = full.runs()[0].folder / "run.json"

    def finish(when: str) -> None:
        content = read_json(path)
        content["provenance"]["finished"] = when
        write_json(path, content)

    finish("2030-01-01T00:00:00+00:00")
    pack(full, tmp_path / "pack")
    finish("2031-01-01T00:00:00+00:00")
    assert unpack(full, tmp_path / "pack") == (0, 7)
    assert full.runs()[0].provenance["finished"].startswith("2031")
    finish("2029-01-01T00:00:00+00:00")
    assert unpack(full, tmp_path / "pack") == (1, 6)
    assert full.runs()[0].provenance["finished"].startswith("2030")


def test_a_smaller_pack_leaves_no_old_pieces(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(pack(full, tmp_path / "pack")) > 2
    monkeypatch.setattr(packing, "PIECE", 10_000_000)
    assert pack(full, tmp_path / "pack") == sorted(tmp_path.glob("pack.*"))


@pytest.mark.parametrize(
    "damage", ["flip", "cut", "lose the first", "lose the last", "lose one between", "swap"]
)
def test_damage_is_noticed(full: Store, tmp_path: Path, damage: str) -> None:
    pieces = pack(full, tmp_path / "pack")
    middle = pieces[1]
    content = middle.read_bytes()
    if damage == "flip":
        middle.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    elif damage == "cut":
        pieces[-1].write_bytes(pieces[-1].read_bytes()[:-1])
    elif damage == "swap":
        middle.write_bytes(pieces[0].read_bytes())
        pieces[0].write_bytes(content)
    else:
        {"first": pieces[0], "last": pieces[-1], "between": middle}[damage.split()[-1]].unlink()
    other = Store(tmp_path / "other")
    with pytest.raises(
        PackDamaged, match=r"pieces? ?.*of .*pack(, is| are damaged or) not (all )?here; copy (it|them) again"
    ):
        unpack(other, tmp_path / "pack")
    assert not other.root.exists()


def test_checkpoints_are_packed_when_asked_for(full: Store, tmp_path: Path) -> None:
    full.checkpoints("abc").mkdir(parents=True)
    (full.checkpoints("abc") / "training.safetensors").write_bytes(b"weights")
    other = Store(tmp_path / "other")
    pack(full, tmp_path / "pack")
    unpack(other, tmp_path / "pack")
    assert not other.checkpoints("abc").exists()
    pack(full, tmp_path / "pack", checkpoints=True)
    assert unpack(other, tmp_path / "pack") == (1, 7)
    assert (other.checkpoints("abc") / "training.safetensors").read_bytes() == b"weights"


def test_nothing_to_pack_or_unpack_is_refused(store: Store, tmp_path: Path) -> None:
    with pytest.raises(
        Refused, match=r"nothing to pack in .*store; run a study first or name another --store"
    ):
        pack(store, tmp_path / "pack")
    with pytest.raises(
        Refused, match=r"pack\.000 does not exist; name the FILE that was given to `store pack`"
    ):
        unpack(store, tmp_path / "pack")


def test_a_pack_of_the_older_form_is_read(full: Store, tmp_path: Path) -> None:
    (full.root / "checkpoints" / "abc").mkdir(parents=True)
    (full.root / "checkpoints" / "abc" / "epoch-12.safetensors").write_bytes(b"weights")
    folders = sorted({path.parent for path in full.root.rglob("*") if path.is_file()})
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:  # as skiplab did before there was a manifest
        for folder in folders:
            archive.add(folder, arcname=folder.relative_to(full.root).as_posix())
    content = buffer.getvalue()
    content += hashlib.sha256(content).digest()
    for number in range(-(-len(content) // packing.PIECE)):
        start = number * packing.PIECE
        (tmp_path / f"pack.{number:03d}").write_bytes(content[start : start + packing.PIECE])
    other = Store(tmp_path / "other")
    assert unpack(other, tmp_path / "pack") == (8, 0)
    assert files(other) == files(full)


def test_the_pieces_are_a_tar_file_with_a_manifest(full: Store, tmp_path: Path) -> None:
    joined = b"".join(piece.read_bytes() for piece in pack(full, tmp_path / "pack"))
    with tarfile.open(fileobj=io.BytesIO(joined[:-32])) as archive:
        names = archive.getnames()
        stored = files(full)
        assert sorted(names[:-1]) == sorted(stored)
        assert names[-1] == "manifest.json"
        manifest = archive.extractfile("manifest.json")
        assert manifest is not None
        sums = json.load(manifest)["sha256"]
    assert sums == {name: hashlib.sha256(content).hexdigest() for name, content in stored.items()}


def test_the_same_store_gives_the_same_bytes(full: Store, tmp_path: Path) -> None:
    first = [piece.read_bytes() for piece in pack(full, tmp_path / "one")]
    copy = Store(tmp_path / "copy")
    unpack(copy, tmp_path / "one")
    assert [piece.read_bytes() for piece in pack(copy, tmp_path / "two")] == first


def test_what_is_not_a_store_s_is_left_out_and_said(full: Store, tmp_path: Path) -> None:
    expected = files(full)
    run = full.runs()[0].folder
    for name in (
        "trials/notes.txt",
        "studies/.DS_Store",
        "trials/abc/deep/table.parquet",
        "trials/abc/a b.json",
    ):
        (full.root / name).parent.mkdir(parents=True, exist_ok=True)
        (full.root / name).write_text("stray")
    (run / "run.json~").write_text("a copy that an editor left")
    (run / "link.json").symlink_to(run / "run.json")
    (full.root / "studies" / "elsewhere").symlink_to(tmp_path)
    os.mkfifo(full.root / "trials" / "abc" / "pipe.json")
    damaged = run.parent / "damaged"
    damaged.mkdir()
    (damaged / "run.json").write_text("{")
    (damaged / "table.parquet").write_text("of a run that cannot be read")
    said: list[str] = []
    pack(full, tmp_path / "pack", tell=said.append)
    assert len(said) == 1
    assert said[0].startswith("9 file(s) that are damaged or not skiplab's were left out, such as '")
    other = Store(tmp_path / "other")
    assert unpack(other, tmp_path / "pack") == (7, 0)
    assert files(other) == expected


def test_an_earlier_pack_stays_until_the_new_one_is_whole(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "carried"
    pack(full, folder / "pack")
    before = {path: path.read_bytes() for path in folder.iterdir()}
    rename, write = os.rename, pieces.Writer.write

    def full_disk(self: pieces.Writer, content: bytes) -> None:
        if len(self.paths) > 1:
            raise OSError(28, "No space left on device")
        write(self, content)

    monkeypatch.setattr(pieces.Writer, "write", full_disk)
    with pytest.raises(
        SkiplabError, match=r"could not be packed into .*pack \(No space left on device\); mend"
    ):
        pack(full, folder / "pack")
    monkeypatch.setattr(pieces.Writer, "write", write)
    for fails_at in range(2 * len(before)):
        calls: list[object] = []

        def failing(source: Path, target: Path, calls: list[object] = calls, at: int = fails_at) -> None:
            calls.append(source)
            if len(calls) == at + 1:
                raise PermissionError(13, "Permission denied", str(target))
            rename(source, target)

        with monkeypatch.context() as patch:
            patch.setattr(pieces, "move", failing)
            with pytest.raises(SkiplabError, match="Permission denied"):
                pack(full, folder / "pack")
        assert {path: path.read_bytes() for path in folder.iterdir()} == before


class Killed(BaseException):
    """Nothing that runs after it is run, as after a real kill."""


def kill_while_packing(full: Store, file: Path, at: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Pack until so many pieces have been renamed; False where there were not that many."""
    calls: list[object] = []

    def killed(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) > at:
            raise Killed
        os.replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(pieces, "move", killed)
        with suppress(Killed):
            pack(full, file)
    return len(calls) > at


@pytest.mark.parametrize("extra", [0, 40_000])
def test_killed_between_two_renames_the_earlier_pack_is_there_again(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: int
) -> None:
    """At every rename, with a new pack of as many pieces and of more."""
    folder = tmp_path / "carried"
    pack(full, folder / "pack")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (full.trial_folder(full.runs()[0].trials[0]["key"]) / "more.json").write_bytes(bytes(extra))
    for at in range(len(before) + 4):
        if not kill_while_packing(full, folder / "pack", at, monkeypatch):
            break  # all renames were done
        store = Store(tmp_path / f"store-{at}")
        assert unpack(store, folder / "pack")[0] == 7
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


PACKER = """
import sys, time
from pathlib import Path
from skiplab.reproduction import packing, pieces
from skiplab.reproduction.store import Store

packing.PIECE, move = 20_000, pieces.move

def slowly(source, target):
    time.sleep(0.003)  # so that whoever does not wait for us meets a pack of which half is moved
    move(source, target)

pieces.move = slowly
print("begun", flush=True)
while not Path(sys.argv[4]).exists():
    for store in sys.argv[1:3]:
        packing.pack(Store(Path(store)), Path(sys.argv[3]))
"""


def test_unpacking_while_others_pack_under_the_same_name_gives_one_whole_pack(
    full: Store, tmp_path: Path
) -> None:
    """Two processes replace one pack by another all the time; whoever unpacks gets the one or the other."""
    small, file, stop = Store(tmp_path / "small"), tmp_path / "carried" / "pack", tmp_path / "stop"
    one = full.trial_folder(full.runs()[0].trials[0]["key"])
    shutil.copytree(one, small.root / one.relative_to(full.root))
    pack(full, file)
    command = [sys.executable, "-c", PACKER, *map(str, (full.root, small.root, file, stop))]
    packers = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in "ab"
    ]
    seen: list[dict[str, bytes]] = []
    whole = [files(full), files(small)]
    try:
        for packer in packers:
            assert packer.stdout is not None
            assert packer.stdout.readline() == "begun\n"
        for number in range(400):
            store = Store(tmp_path / f"store-{number}")
            unpack(store, file)
            seen.append(files(store))
            if number >= 40 and all(each in seen for each in whole):
                break
    finally:
        stop.touch()
        ends = [packer.communicate(timeout=60) for packer in packers]
    assert [(packer.returncode, errors) for packer, (_, errors) in zip(packers, ends, strict=True)] == [
        (0, "")
    ] * 2
    assert all(each in whole for each in seen)
    assert all(each in seen for each in whole)
    assert sorted(path.name for path in file.parent.iterdir()) == ["pack.000"]  # the small one, packed last


@pytest.mark.parametrize("how", [shutil.copy, shutil.copy2, os.replace])
def test_pieces_that_somebody_copied_there_after_a_kill_are_what_is_unpacked(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: Callable[[Path, Path], object]
) -> None:
    """However they came there, and at whichever rename the kill came; nothing of the earlier pack is lost."""
    small, folder = Store(tmp_path / "small"), tmp_path / "carried"
    one = full.trial_folder(full.runs()[0].trials[0]["key"])
    shutil.copytree(one, small.root / one.relative_to(full.root))
    for at in itertools.count(1):
        shutil.rmtree(folder, ignore_errors=True)
        old = [path.read_bytes() for path in pack(full, folder / "pack")]
        (newer,) = pack(small, tmp_path / "newer" / "pack")
        if not kill_while_packing(full, folder / "pack", at, monkeypatch):
            break
        moved = list((folder / ".skiplab-replaced-pack").glob("pack.*"))
        for path in folder.glob("pack.*"):
            if path.name != newer.name:
                path.unlink()
        how(newer, folder / newer.name)
        with pytest.warns(
            DamageFound, match=r"pack\.000 was put there after a `store pack` had been cut short"
        ):
            assert unpack(Store(tmp_path / f"store-{at}"), folder / "pack")[0] == 1
        kept = [path.read_bytes() for path in folder.rglob("pack.*") if path.is_file()]
        assert all(piece in kept for piece in old[: len(moved)])
        assert not (folder / ".skiplab-replaced-pack").exists()
    assert at == 2 * len(old)


def test_killed_after_the_last_rename_the_new_pack_counts(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "carried"
    pack(full, folder / "pack")
    (full.trial_folder(full.runs()[0].trials[0]["key"]) / "more.json").write_bytes(bytes(100))

    def killed(path: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(pieces, "remove", killed)
        with pytest.raises(Killed):
            pack(full, folder / "pack")
    new = {path.name: path.read_bytes() for path in folder.glob("pack.*")}
    assert unpack(Store(tmp_path / "other"), folder / "pack")[0] == 7
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == new


def test_a_piece_that_is_not_a_plain_file_is_not_replaced(full: Store, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "pack.000").symlink_to(tmp_path / "mine")
    with pytest.raises(Refused, match=r"pack\.000 is a link in the way; move it or name another"):
        pack(full, tmp_path / "pack")
    assert (tmp_path / "pack.000").is_symlink()
    assert (tmp_path / "mine").read_text() == "mine"
    os.mkfifo(tmp_path / "pipe.000")
    with pytest.raises(PackDamaged, match=r"pipe\.000 is not a plain file; copy the pieces"):
        unpack(full, tmp_path / "pipe")


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_file_that_no_pack_wrote_is_not_replaced(full: Store, tmp_path: Path, number: int) -> None:
    """Neither in the place of the first piece, nor behind an earlier pack, nor behind a gap."""
    if number == 1:
        (tmp_path / "pack.000").write_bytes(pack(full, tmp_path / "other")[0].read_bytes())
    mine = tmp_path / f"pack.{number:03d}"
    mine.write_text("mine")
    before = {path.name: path.read_bytes() for path in tmp_path.glob("pack*")}
    first = "pack.002 is a file in the way" if number == 2 else "pack.000 was not written by `store pack`"
    with pytest.raises(Refused, match=rf"{first}.*; move it.* or name another FILE"):
        pack(full, tmp_path / "pack")
    assert {path.name: path.read_bytes() for path in tmp_path.glob("pack*")} == before


def test_a_file_with_a_number_of_the_user_s_own_stays(full: Store, tmp_path: Path) -> None:
    (tmp_path / "pack.2024").write_text("mine")
    (tmp_path / "pack.999").write_text("mine")
    pack(full, tmp_path / "pack")
    assert (tmp_path / "pack.2024").read_text() == (tmp_path / "pack.999").read_text() == "mine"
    assert unpack(Store(tmp_path / "other"), tmp_path / "pack") == (7, 0)


@pytest.mark.parametrize("name", ["", "/", ".", ".."])
def test_what_names_no_file_is_refused(full: Store, name: str) -> None:
    for act in (pack, unpack):
        with pytest.raises(Refused, match="names no file; write a name such as results"):
            act(full, Path(name))


def test_more_than_the_disk_has_is_refused(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(full, tmp_path / "pack")
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(50_000))
    with pytest.raises(
        Refused, match=r"needs [\d.]+ KiB in .*, but the disk has 48\.8 KiB free; free some space"
    ):
        unpack(Store(tmp_path / "other"), tmp_path / "pack")
    assert not (tmp_path / "other").exists()


def test_a_store_above_the_limit_is_not_packed(
    full: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packing, "LIMIT", 10_000)
    with pytest.raises(Refused, match=r"a pack takes 200,000 files of 9\.8 KiB.*; pack without"):
        pack(full, tmp_path / "pack")
    assert not list(tmp_path.glob("pack.*"))


def test_a_damaged_run_here_is_replaced_by_the_packed_one(full: Store, tmp_path: Path) -> None:
    pack(full, tmp_path / "pack")
    path = full.runs()[0].folder / "run.json"
    whole = path.read_bytes()
    for damage in (b"", b"{", b"[]", b'{"provenance": 1}', b"\xff"):
        path.write_bytes(damage)
        assert unpack(full, tmp_path / "pack") == (1, 6)
        assert path.read_bytes() == whole


def test_pieces_that_change_while_they_are_unpacked_add_nothing(full: Store, tmp_path: Path) -> None:
    (first, *_) = pack(full, tmp_path / "pack")
    other = Store(tmp_path / "other")

    def swap(sentence: str) -> None:
        content = bytearray(first.read_bytes())
        content[600] ^= 1  # inside the first file
        first.write_bytes(content)

    with pytest.raises(PackDamaged, match="copy them again"):
        unpack(other, tmp_path / "pack", tell=swap)
    assert files(other) == {}


def test_an_archive_is_never_held_in_memory(store: Store, tmp_path: Path) -> None:
    for number in range(4):
        store.checkpoints(f"{number}").mkdir(parents=True)
        (store.checkpoints(f"{number}") / "training.safetensors").write_bytes(os.urandom(8 * 2**20))
    tracemalloc.start()
    try:
        assert len(pack(store, tmp_path / "pack", checkpoints=True)) == 3
        assert unpack(Store(tmp_path / "other"), tmp_path / "pack") == (4, 0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * 2**20
