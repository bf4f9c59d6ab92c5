"""Packs that nobody's `store pack` wrote: each ends in one sentence, and nothing is written anywhere."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from skiplab.reproduction import packing
from skiplab.reproduction.packing import PackDamaged, unpack
from skiplab.reproduction.store import Store

KEY = "0123456789abcdef0123456789abcdef"
TABLE, RECORD = f"trials/{KEY}/table.parquet", f"trials/{KEY}/record.json"
RUN = "studies/toy2000/figure-1/quick/run.json"
FINISHED = json.dumps({"provenance": {"finished": "2030-01-01"}}).encode()
Entry = tuple[tarfile.TarInfo, bytes]
OUTSIDE = "/../../../outside.txt"


def entry(path: str, content: bytes = b"x", kind: bytes = tarfile.REGTYPE, **fields: Any) -> Entry:
    info = tarfile.TarInfo(path)
    info.type, info.size = kind, len(content) if kind == tarfile.REGTYPE else 0
    for name, value in fields.items():
        setattr(info, name, value)
    return info, content


def tar(*entries: Entry, form: int = tarfile.USTAR_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=form) as archive:
        for info, content in entries:
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def good(*more: Entry) -> bytes:
    """An archive that would be taken, but for what is added."""
    return tar(entry(TABLE), entry(RECORD, b"{}"), *more)


def link(path: str, target: str, kind: bytes = tarfile.SYMTYPE) -> Entry:
    return entry(path, b"", kind, linkname=target)


def listed(sums: Any, form: Any = 1, *, twice: bool = False) -> bytes:
    manifest = entry("manifest.json", json.dumps({"form": form, "sha256": sums}).encode())
    return good(*[manifest] * (2 if twice else 1))


def right() -> dict[str, str]:
    return {TABLE: hashlib.sha256(b"x").hexdigest(), RECORD: hashlib.sha256(b"{}").hexdigest()}


def patched(at: int, content: bytes, *, checksum: bool = True) -> bytes:
    """A good archive with some bytes of its first header changed, and its checksum made to fit."""
    block = bytearray(good())
    block[at : at + len(content)] = content
    if checksum:
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block[:512])
    return bytes(block)


def chain() -> bytes:
    """Links whose resolved path is too long for realpath to follow, as CVE-2025-4517 has them."""
    long, path, entries = "d" * 247, f"trials/{KEY}", []
    for step in "abcdefghijklmnop":
        entries += [entry(f"{path}/{long}", b"", tarfile.DIRTYPE), link(f"{path}/{step}", long)]
        path += f"/{long}"
    steps = "/".join("abcdefghijklmnop")
    entries.append(link(f"trials/{KEY}/{steps}/{'l' * 254}", "../" * 16))
    entries.append(link(f"trials/{KEY}/escape", f"{steps}/{'l' * 254}{OUTSIDE}"))
    entries += [link(f"trials/{KEY}/out.json", f"trials/{KEY}/escape", tarfile.LNKTYPE)]
    return tar(*entries, entry(f"trials/{KEY}/out.json", b"pwned"), form=tarfile.PAX_FORMAT)


def pax(**records: str) -> bytes:
    info, content = entry(TABLE)
    info.pax_headers = records
    return tar((info, content), form=tarfile.PAX_FORMAT)


def other_path(path: str) -> bytes:
    return good(entry(path))


def of_kind(kind: bytes) -> bytes:
    return good(entry(f"trials/{KEY}/more.json", b"", kind))


def of_run(content: bytes) -> bytes:
    return good(entry(RUN, content))


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    # Ways out of the store.
    "parent": (lambda: other_path(f"trials/{KEY}{OUTSIDE}"), "no file of a store"),
    "parent at once": (lambda: other_path("../outside.txt"), "no file of a store"),
    "parent as a key": (lambda: other_path("trials/../record.json"), "no file of a store"),
    "parent as a run": (lambda: other_path("studies/toy2000/../../run.json"), "no file of a store"),
    "absolute": (lambda: other_path("/trials/abc/record.json"), "no file of a store"),
    "dot first": (lambda: other_path(f"./trials/{KEY}/more.json"), "no file of a store"),
    "empty part": (lambda: other_path(f"trials//{KEY}/more.json"), "no file of a store"),
    "backslash": (lambda: other_path("trials\\..\\..\\outside.json"), "no file of a store"),
    "drive": (lambda: other_path("C:/trials/abc/record.json"), "no file of a store"),
    "hidden file": (lambda: other_path(f"trials/{KEY}/.record.json"), "no file of a store"),
    "hidden folder": (lambda: other_path("trials/.aside-abc/record.json"), "no file of a store"),
    "other room": (lambda: other_path("report/index.html"), "no file of a store"),
    "room's own file": (lambda: other_path("trials/notes.json"), "no file of a store"),
    "too deep": (lambda: other_path(f"trials/{KEY}/deep/record.json"), "no file of a store"),
    "not deep enough": (lambda: other_path("studies/toy2000/run.json"), "no file of a store"),
    "program": (lambda: other_path(f"trials/{KEY}/run.py"), "no file of a store"),
    "escape codes": (lambda: other_path(f"trials/{KEY}/\x1b[2Jred.json"), r"\\x1b\[2Jred"),
    "newline": (lambda: other_path(f"trials/{KEY}/record.json\n"), "no file of a store"),
    "not ASCII": (lambda: tar(entry(f"trials/{KEY}/récord.json")), "no file of a store"),
    "upper case": (lambda: other_path(f"trials/{KEY}/RECORD.json"), "no file of a store"),
    "no name": (lambda: other_path(""), "no file of a store"),
    "folder elsewhere": (lambda: good(entry("../x", b"", tarfile.DIRTYPE)), "no folder of a store"),
    "folder as manifest": (lambda: good(entry("manifest.json", b"", tarfile.DIRTYPE)), "no folder of a store"),
    "folder with content": (lambda: patched(156, b"5"), "unknown kind"),
    "prefix": (lambda: patched(345, b"../.."), "more than a name"),
    "after the name": (lambda: patched(90, b"/../x"), "more than a name"),
    "link of a file": (lambda: patched(157, b"/etc/hosts"), "more than a name"),
    # Kinds.
    "symbolic link": (lambda: good(link(f"trials/{KEY}/more.json", OUTSIDE)), "is a symbolic link"),
    "link as folder": (lambda: tar(link(f"trials/{KEY}", "../.."), entry(TABLE)), "is a symbolic link"),
    "hard link": (lambda: good(link(f"trials/{KEY}/l.json", "/etc/hosts", tarfile.LNKTYPE)), "is a hard link"),
    "chain of links": (chain, "skiplab writes it"),
    "character device": (lambda: of_kind(tarfile.CHRTYPE), "is a character device"),
    "block device": (lambda: of_kind(tarfile.BLKTYPE), "is a block device"),
    "FIFO": (lambda: of_kind(tarfile.FIFOTYPE), "is a FIFO"),
    "contiguous": (lambda: of_kind(tarfile.CONTTYPE), "is a contiguous file"),
    "sparse": (lambda: of_kind(tarfile.GNUTYPE_SPARSE), "is a sparse file"),
    "unknown kind": (lambda: of_kind(b"Z"), "of an unknown kind"),
    "long GNU name": (lambda: tar(entry("x" * 300), form=tarfile.GNU_FORMAT), "another format"),
    "other path in notes": (lambda: pax(path="../outside.json"), "notes that change what follows"),
    "link in notes": (lambda: pax(linkpath="/etc/hosts"), "notes that change what follows"),
    "sparse in notes": (lambda: pax(**{"GNU.sparse.major": "1"}), "notes that change what follows"),
    "long notes": (lambda: pax(mtime="1" * 5000), "notes that change what follows"),
    "notes for all": (lambda: patched(156, b"g"), "is a global header"),
    "broken notes": (lambda: patched(156, b"x"), "notes that change what follows"),
    # Numbers, and twice the same.
    "huge size": (lambda: patched(124, b"77777777777\0"), "said to have 8,589,934,591 bytes"),
    "negative size": (lambda: patched(124, b"\xff" * 12), "a size that is no number"),
    "size in base 256": (lambda: patched(124, b"\x80" + bytes(10) + b"\1"), "a size that is no number"),
    "size of letters": (lambda: patched(124, b"size is huge"), "a size that is no number"),
    "no size": (lambda: patched(124, bytes(12)), "a size that is no number"),
    "size 0": (lambda: patched(124, b"00000000000\0"), "damaged header"),  # the bytes come as the next header
    "twice": (lambda: good(entry(RECORD, b"[]")), "in it twice"),
    "file as folder too": (lambda: good(entry(f"{RECORD}/more.json")), "no file of a store"),
    # Damage under a right digest.
    "nothing": (lambda: b"", "ends in the middle"),
    "an empty archive": (lambda: tar(), "holds no results"),
    "zeros": (lambda: bytes(1024), "holds no results"),
    "noise": (lambda: bytes(range(256)) * 40, "another format"),
    "text": (lambda: b"no tar at all", "ends in the middle"),
    "cut in a header": (lambda: good()[:700], "ends in the middle"),
    "cut after a header": (lambda: good()[:512], "more than the pack"),
    "cut after a file": (lambda: good()[:1024], "ends in the middle"),
    "without an end": (lambda: good()[:2048], "ends in the middle"),
    "half an end": (lambda: good()[:2560], "does not end"),
    "more behind the end": (lambda: good() + good(), "does not end"),
    "zeros without end": (lambda: good() + bytes(2**20), "does not end"),
    "wrong checksum": (lambda: patched(0, b"T", checksum=False), "damaged header"),
    "compressed": (lambda: gzip.compress(good() + bytes(2**26)), "another format"),
    # Manifests and runs that do not say what is there.
    "manifest without files": (lambda: tar(entry("manifest.json", b"{}")), "holds no results"),
    "no form": (lambda: listed(right(), form=None), "form 'None'"),
    "form of tomorrow": (lambda: listed(right(), form=2), "form '2', but this skiplab reads 1"),
    "no sums": (lambda: listed(None), "lists other files"),
    "sums in a list": (lambda: listed([*right()]), "lists other files"),
    "a file too few": (lambda: listed({TABLE: right()[TABLE]}), "lists other files"),
    "a file too many": (lambda: listed(right() | {RUN: "0" * 64}), "lists other files"),
    "wrong sum": (lambda: listed(right() | {TABLE: "0" * 64}), "another SHA-256 than its manifest"),
    "sum of another kind": (lambda: listed(right() | {TABLE: 3}), "another SHA-256 than its manifest"),
    "two manifests": (lambda: listed(right(), twice=True), "in it twice"),
    "manifest not JSON": (lambda: good(entry("manifest.json", b"{")), "'manifest.json' cannot be read"),
    "manifest a number": (lambda: good(entry("manifest.json", b"1")), "'manifest.json' cannot be read"),
    "manifest too deep": (lambda: good(entry("manifest.json", b"[" * 10**6)), "cannot be read"),
    "run not JSON": (lambda: of_run(b"{"), r"run\.json' cannot be read"),
    "run not text": (lambda: of_run(b"\xff\xfe\xfa"), r"run\.json' cannot be read"),
    "run a list": (lambda: of_run(b"[]"), r"run\.json' cannot be read"),
    "run too deep": (lambda: of_run(b'{"a":' * 10**5), r"run\.json' cannot be read"),
    "run of long numbers": (lambda: of_run(b'{"a": ' + b"9" * 5000 + b"}"), r"run\.json' cannot be read"),
    "run without provenance": (lambda: of_run(b"{}"), "does not say when its run finished"),
    "run finished at 3": (lambda: of_run(b'{"provenance": {"finished": 3}}'), "does not say when"),
}  # fmt: skip


def write_pack(file: Path, body: bytes) -> Path:
    file.with_name(f"{file.name}.000").write_bytes(body + hashlib.sha256(body).digest())
    return file


def everything(root: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in root.rglob("*")}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_pack_ends_in_a_sentence_and_writes_nothing(name: str, tmp_path: Path) -> None:
    make, words = HOSTILE[name]
    (tmp_path / "outside.txt").write_text("mine")
    file = write_pack(tmp_path / "pack", make())
    before = everything(tmp_path)
    with pytest.raises(PackDamaged, match=words) as caught:
        unpack(Store(tmp_path / "deep" / "er" / "store"), file)
    sentence = str(caught.value)
    assert sentence.isprintable()
    assert sentence.endswith("so have it packed again.")
    assert everything(tmp_path) == before


def test_nothing_is_written_when_only_the_last_file_is_bad(tmp_path: Path) -> None:
    body = tar(*(entry(f"trials/{number:032x}/table.parquet") for number in range(50)), entry("x.txt"))
    with pytest.raises(PackDamaged, match=r"'x\.txt' is no file of a store"):
        unpack(Store(tmp_path / "store"), write_pack(tmp_path / "pack", body))
    assert not (tmp_path / "store").exists()


def test_the_archive_behind_the_variants_is_taken(tmp_path: Path) -> None:
    for number, body in enumerate(
        [good(), listed(right()), of_run(FINISHED), pax(mtime="1.5", uid="99999999")]
    ):
        store = Store(tmp_path / f"store-{number}")
        assert unpack(store, write_pack(tmp_path / "pack", body))[0] == 1 + (number == 2)
        assert (store.root / TABLE).read_bytes() == b"x"


@pytest.mark.parametrize("content", [b"", b"short", bytes(32), bytes(4096)])
def test_pieces_without_their_digest_are_damaged(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "pack.000").write_bytes(content)
    with pytest.raises(PackDamaged, match="damaged or not all here; copy them again"):
        unpack(Store(tmp_path / "store"), tmp_path / "pack")
    assert not (tmp_path / "store").exists()


def test_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_pack(tmp_path / "pack", tar(entry(TABLE, bytes(3 * 2**20)), entry(RECORD)))
    monkeypatch.setattr(packing, "LIMIT", 2 * 2**20)
    with pytest.raises(PackDamaged, match=r"holds more than 200,000 files or 2\.0 MiB"):
        unpack(Store(tmp_path / "store"), file)
    monkeypatch.setattr(packing, "LIMIT", 2**34)
    monkeypatch.setattr(packing, "MOST_FILES", 0)
    with pytest.raises(PackDamaged, match=r"holds more than 0 files or 16\.0 GiB"):
        unpack(Store(tmp_path / "store"), file)
    assert not (tmp_path / "store").exists()


def test_every_single_cut_and_many_flips_are_noticed(tmp_path: Path) -> None:
    whole = listed(right())
    whole += hashlib.sha256(whole).digest()
    store, piece = Store(tmp_path / "store"), tmp_path / "pack.000"
    for at in range(0, len(whole), 97):
        flipped = whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :]
        for content in (whole[:at], flipped):
            piece.write_bytes(content)
            with pytest.raises(PackDamaged):
                unpack(store, tmp_path / "pack")
    assert not store.root.exists()
