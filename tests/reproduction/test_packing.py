"""Packing: small pieces, damage noticed, unpacking twice the same as once."""

from __future__ import annotations

from pathlib import Path

import pytest
from counted_studies import COUNT, counts

from skiplab.checks import Refused
from skiplab.files import read_json, write_json
from skiplab.reproduction import packing
from skiplab.reproduction.packing import PackDamaged, pack, unpack
from skiplab.reproduction.runner import Options, run_study
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
    run_study(COUNT, store, options=SERIAL)
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
        PackDamaged, match=r"piece\(s\) of .*pack are damaged or not all here; copy them again"
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
