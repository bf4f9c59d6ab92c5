"""Fingerprints name the decoded arrays, are remembered, and notice every change."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from skiplab import data
from skiplab.data import identity
from skiplab.data.registry import CIFAR10

if TYPE_CHECKING:
    from conftest import Official


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The splits decoded so far, in a process that remembers nothing yet."""
    seen: list[tuple[str, str]] = []
    decode = identity.decode

    def counting(name: str, split: str, folder: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
        seen.append((name, split))
        return decode(name, split, folder)

    monkeypatch.setattr(identity, "decode", counting)
    identity._digest.cache_clear()
    return seen


def test_the_hash_is_of_the_decoded_arrays(official: Official) -> None:
    official.cifar10(official.pixels(3), [7, 8, 9])
    images = hashlib.sha256(official.pixels(3).tobytes()).hexdigest()
    labels = hashlib.sha256(bytes([7, 8, 9])).hexdigest()
    expected = hashlib.sha256(f"train {images} {labels}\n".encode()).hexdigest()
    assert data.fingerprint("cifar10") == expected


def test_the_split_into_batches_does_not_matter(official: Official) -> None:
    official.cifar10(official.pixels(3), [7, 8, 9])
    whole = data.fingerprint("cifar10")
    official.cifar10(official.pixels(3)[:1], [7], "data_batch_1")
    official.cifar10(official.pixels(3)[1:], [8, 9], "data_batch_5")
    assert data.fingerprint("cifar10") == whole


def test_coarse_and_fine_labels_differ(official: Official) -> None:
    official.cifar100(official.pixels(2), [1, 2], [3, 4])
    assert data.fingerprint("cifar100-coarse") != data.fingerprint("cifar100-fine")


def test_the_official_cifar10_is_known_in_advance() -> None:
    lines = {s: identity.Digest(CIFAR10.complete[s], h.images, h.labels) for s, h in CIFAR10.hashes.items()}
    expected = "f94989b11ea9cf77eed88f8c91506f1ada2c1247d4bc7acf4652782ed0152219"
    assert identity.combine(lines) == expected


def test_digits_have_the_constant_that_their_arrays_give() -> None:
    assert data.fingerprint("digits") == identity.combine(identity._digests("digits"))


def test_files_are_hashed_once(official: Official, reads: list[tuple[str, str]]) -> None:
    official.cifar10(official.pixels(3), [7, 8, 9])
    first = data.fingerprint("cifar10")
    identity._digest.cache_clear()
    assert data.fingerprint("cifar10") == first
    assert reads == [("cifar10", "train")]


def test_a_changed_file_is_hashed_again(official: Official, reads: list[tuple[str, str]]) -> None:
    path = official.cifar10(official.pixels(3), [7, 8, 9])
    first = data.fingerprint("cifar10")
    official.cifar10(official.pixels(3), [7, 8, 1])
    os.utime(path, ns=(1, 1))  # the same size, another time
    assert data.fingerprint("cifar10") != first
    official.cifar10(official.pixels(1), [0], "test_batch")
    assert data.fingerprint("cifar10") != first
    assert reads == [("cifar10", "train"), ("cifar10", "train"), ("cifar10", "test")]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cifar10/train": 3}', '{"cifar10/train": {"files": []}}'])
def test_a_damaged_memory_is_forgotten(text: str, official: Official, reads: list[tuple[str, str]]) -> None:
    official.cifar10(official.pixels(3), [7, 8, 9])
    (official.folder / identity.FILE).write_text(text)
    data.fingerprint("cifar10")
    assert reads == [("cifar10", "train")]
    assert json.loads((official.folder / identity.FILE).read_text())["cifar10/train"]["digest"]["count"] == 3


def test_a_folder_that_cannot_be_written_is_tolerated(
    official: Official, reads: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    # The tests may run as root, whom no mode of a folder stops.
    monkeypatch.setattr(identity, "replacing", refuse)
    official.cifar10(official.pixels(3), [7, 8, 9])
    assert data.fingerprint("cifar10") == data.fingerprint("cifar10")
    assert reads == [("cifar10", "train")]
    assert not (official.folder / identity.FILE).exists()
