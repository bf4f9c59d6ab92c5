"""Official files are read pixel by pixel as their formats say, and bad ones are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from skiplab import data
from skiplab.checks import DataDamaged, DataMissing, Refused
from skiplab.data.formats import read_cifar, write_cifar

if TYPE_CHECKING:
    from conftest import Official

LABELS = {
    "cifar10": [3, 0, 9, 1],
    "cifar100-coarse": [19, 0, 3, 1],
    "cifar100-fine": [99, 2, 50, 0],
    "svhn": [0, 1, 9, 5],
    "stl10": [0, 9, 2, 6],
}


@pytest.mark.parametrize("name", LABELS)
def test_images_and_labels_come_back(name: str, official: Official) -> None:
    assert not data.is_available(name)
    official.four(name)
    assert data.is_available(name)
    got = data.load(name)
    np.testing.assert_array_equal(got.images, official.pixels(4, 96 if name == "stl10" else 32))
    assert got.images.dtype == np.uint8
    assert got.labels.dtype == np.int64
    assert got.labels.tolist() == LABELS[name]
    assert got.classes == (20 if name == "cifar100-coarse" else 100 if name == "cifar100-fine" else 10)
    assert (got.name, got.fingerprint, len(got)) == (name, data.fingerprint(name), 4)


def test_batches_are_joined_in_order_and_may_be_partial(official: Official) -> None:
    official.cifar10(official.pixels(2, seed=4), [4, 4], "data_batch_4")
    official.cifar10(official.pixels(3, seed=2), [2, 2, 2], "data_batch_2")
    got = data.load("cifar10")
    assert got.labels.tolist() == [2, 2, 2, 4, 4]
    np.testing.assert_array_equal(
        got.images, np.concatenate([official.pixels(3, seed=2), official.pixels(2, seed=4)])
    )


def test_written_batches_are_the_official_bytes(official: Official) -> None:
    expected = official.cifar100(official.pixels(3), [1, 2, 3], [4, 5, 6])
    written = official.folder / "ours.bin"
    write_cifar(written, official.pixels(3), np.array([1, 2, 3]), np.array([4, 5, 6]))
    assert written.read_bytes() == expected.read_bytes()
    images, labels = read_cifar(written, (20, 100), 1)
    np.testing.assert_array_equal(images, official.pixels(3))
    assert labels.tolist() == [4, 5, 6]


@pytest.mark.parametrize("name", LABELS)
def test_a_truncated_file_is_named_with_the_remedy(name: str, official: Official) -> None:
    path = official.four(name)
    path.write_bytes(path.read_bytes()[:-7])
    command = data.remedy(name)
    with pytest.raises(DataDamaged, match=rf"{path.name} .*expected|{path.name} is truncated") as caught:
        data.load(name)
    assert str(caught.value).endswith(f"mend it with `{command}`.")
    with pytest.raises(DataDamaged, match=command):
        data.fingerprint(name)


def test_an_empty_file_is_damaged(official: Official) -> None:
    official.cifar10(official.pixels(0), [])
    with pytest.raises(DataDamaged, match=r"has 0 bytes, where a multiple of 3,073 was expected"):
        data.load("cifar10")


def test_labels_out_of_range_are_named(official: Official) -> None:
    official.cifar10(official.pixels(2), [1, 10])
    with pytest.raises(DataDamaged, match=r"data_batch_1.bin has a label 10, where 0 to 9 were expected"):
        data.load("cifar10")
    official.cifar100(official.pixels(2), [1, 20], [0, 0])
    with pytest.raises(DataDamaged, match="has a label 20, where 0 to 19 were expected"):
        data.load("cifar100-fine")
    official.cifar100(official.pixels(2), [1, 1], [100, 0])
    with pytest.raises(DataDamaged, match="has a label 100, where 0 to 99 were expected"):
        data.load("cifar100-coarse")
    official.svhn(official.pixels(2), [0, 1])
    with pytest.raises(DataDamaged, match="has a label 0, where 1 to 10 were expected"):
        data.load("svhn")
    official.stl10(official.pixels(2, 96), [11, 1])
    with pytest.raises(DataDamaged, match=r"train_y.bin has a label 11, where 1 to 10 were expected"):
        data.load("stl10")


def test_a_matlab_file_of_another_shape_is_damaged(official: Official) -> None:
    official.svhn(official.pixels(3), [1, 2])
    with pytest.raises(DataDamaged, match=r"X of shape \(32, 32, 3, 3\) and type uint8 with 2 labels"):
        data.load("svhn")


def test_stl10_needs_as_many_labels_as_images(official: Official) -> None:
    official.stl10(official.pixels(3, 96), [1, 2])
    with pytest.raises(DataDamaged, match=r"train_X.bin holds 3 images and train_y.bin 2 labels"):
        data.load("stl10")


@pytest.mark.parametrize("name", LABELS)
def test_a_missing_set_names_the_file_and_the_command(name: str, official: Official) -> None:
    for ask in (data.load, data.fingerprint):
        with pytest.raises(DataMissing, match=f"{official.folder}/.* is missing; run `{data.remedy(name)}`"):
            ask(name)


def test_a_missing_split_is_told_from_a_missing_set(official: Official) -> None:
    official.four("svhn")
    with pytest.raises(DataMissing, match=r"SVHN has no test images here: .*test_32x32.mat is missing"):
        data.load("svhn", "test")
    with pytest.raises(Refused, match="split 'validation' is unknown"):
        data.load("svhn", "validation")
