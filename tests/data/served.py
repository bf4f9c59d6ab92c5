"""Homes of data sets on this machine: a folder that is served, and packages like the real ones."""

from __future__ import annotations

import dataclasses
import hashlib
import http.server
import io
import json
import os
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from skiplab.data import registry
from skiplab.data.registry import SOURCES, Download, Source

if TYPE_CHECKING:
    from conftest import Official


@dataclasses.dataclass
class Server:
    """A folder served on this machine, and the paths that were asked for."""

    folder: Path
    address: str
    asked: list[str]

    def offer(self, file: str, content: bytes, sha256: str | None = None) -> Download:
        (self.folder / file).write_bytes(content)
        known = sha256 or hashlib.sha256(content).hexdigest()
        return Download(f"{self.address}/{file}", known, archive=file.endswith(".tar.gz"))


def archive(folder: Path, extra: dict[str, bytes] | None = None) -> bytes:
    """Pack everything under a folder as the official archives are packed."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            packed.add(path, path.relative_to(folder).as_posix())
        for name, content in (extra or {}).items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            packed.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def known_as(
    monkeypatch: pytest.MonkeyPatch, name: str, train: int, test: int, *downloads: Download
) -> Source:
    """Declare a set to be complete with that many images, and at home at those addresses."""
    source = dataclasses.replace(
        SOURCES[name], complete={"train": train, "test": test}, downloads=downloads, hashes={}
    )
    monkeypatch.setitem(registry.SOURCES, name, source)
    return source


def contents(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def nowhere() -> Download:
    """An address on this machine that nobody answers."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as closed:
        port = closed.server_port
    return Download(f"http://127.0.0.1:{port}/set.tar.gz", "0" * 64, archive=True)


def package(official: Official, sheet_mode: str = "RGB") -> bytes:
    """A package like the real one, with three images a sheet."""
    from PIL import Image

    files = {}
    for index, sheet in enumerate([*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"]):
        buffer = io.BytesIO()
        pixels = official.pixels(3, seed=index).reshape(3, 1024, 3)
        Image.fromarray(pixels).convert(sheet_mode).save(buffer, "PNG")
        files[f"package/{sheet}.png"] = buffer.getvalue()
    files["package/train_lables.json"] = json.dumps([n % 10 for n in range(15)]).encode()
    files["package/test_lables.json"] = b"[7, 8, 9]"
    return archive(Path(os.devnull), files)
