"""Tensors are standardised by the training images chosen, and prepared components are remembered."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import torch

from skiplab import data
from skiplab.checks import DataMissing, Refused
from skiplab.data import preparation

if TYPE_CHECKING:
    from conftest import Official


@pytest.fixture
def cifar(official: Official) -> Official:
    """Thirty training images and ten test images."""
    official.cifar10(official.pixels(30), [n % 10 for n in range(30)])
    official.cifar10(official.pixels(10, seed=1), list(range(10)), "test_batch")
    return official


def reference(images: np.ndarray, train: np.ndarray) -> torch.Tensor:
    """The definition, in float64: minus the mean of each feature, over one standard deviation."""
    fitted = torch.from_numpy(train).double()
    mean = fitted.mean(0)
    scale = (fitted - mean).square().mean().sqrt()
    return ((torch.from_numpy(images).double() - mean) / scale).permute(0, 3, 1, 2)


def matches(got: torch.Tensor, expected: torch.Tensor) -> list[int]:
    """The row of ``expected`` that each row of ``got`` equals."""
    distance = (got.double().flatten(1)[:, None] - expected.flatten(1)[None]).abs().amax(-1)
    assert distance.amin(1).max() < 1e-6
    return distance.argmin(1).tolist()


def test_whole_images_are_standardised(cifar: Official) -> None:
    train, test = data.tensors("cifar10", flat=False), data.tensors("cifar10", "test", flat=False)
    assert train.inputs.shape == (30, 3, 32, 32)
    rows = matches(train.inputs, reference(cifar.pixels(30), cifar.pixels(30)))
    assert sorted(rows) == list(range(30))
    assert train.labels.tolist() == [row % 10 for row in rows]
    rows = matches(test.inputs, reference(cifar.pixels(10, seed=1), cifar.pixels(30)))
    assert sorted(rows) == list(range(10))
    assert test.labels.tolist() == rows
    assert (train.classes, train.name, train.fingerprint) == (10, "cifar10", data.fingerprint("cifar10"))
    assert train.inputs.mean().abs() < 1e-6
    assert train.inputs.std(correction=0).item() == pytest.approx(1, abs=1e-6)


def test_flat_inputs_are_the_same_numbers(cifar: Official) -> None:
    images, flat = data.tensors("cifar10", flat=False), data.tensors("cifar10")
    assert torch.equal(images.inputs.flatten(1), flat.inputs)


def test_fewer_images_are_the_first_of_more(cifar: Official) -> None:
    more, fewer = data.tensors("cifar10", images=20), data.tensors("cifar10", images=8)
    assert (len(more), len(fewer), len(data.tensors("cifar10", images=99))) == (20, 8, 30)
    assert torch.equal(more.labels[:8], fewer.labels)
    assert torch.equal(data.tensors("cifar10").labels[:20], more.labels)
    rows = matches(data.tensors("cifar10", flat=False).inputs, reference(cifar.pixels(30), cifar.pixels(30)))
    test = data.tensors("cifar10", "test", images=8, flat=False)
    expected = reference(cifar.pixels(10, seed=1), cifar.pixels(30)[rows[:8]])
    assert len(set(matches(test.inputs, expected))) == 8


def test_the_order_does_not_change_between_versions() -> None:
    assert data.tensors("digits", images=12).labels.tolist() == [7, 0, 1, 1, 7, 1, 8, 9, 0, 7, 2, 8]


def test_components_agree_with_the_singular_value_decomposition(cifar: Official) -> None:
    got = data.tensors("cifar10", components=5)
    whole = data.tensors("cifar10", dtype=torch.float64).inputs
    _, singular, right = torch.linalg.svd(whole, full_matrices=False)
    expected = whole @ right[:5].T
    expected /= expected.square().mean().sqrt()
    signs = (got.inputs.double() * expected).sum(0).sign()
    torch.testing.assert_close(got.inputs.double(), expected * signs, atol=1e-5, rtol=1e-5)
    test = data.tensors("cifar10", "test", components=5)
    scale = (singular[:5].square().mean() / 30).sqrt()
    expected = data.tensors("cifar10", "test", dtype=torch.float64).inputs @ right[:5].T / scale * signs
    torch.testing.assert_close(test.inputs.double(), expected, atol=1e-5, rtol=1e-5)
    assert sorted(test.labels.tolist()) == list(range(10))


def test_components_are_made_once_for_both_splits(cifar: Official, monkeypatch: pytest.MonkeyPatch) -> None:
    first = data.tensors("cifar10", components=5)
    test = data.tensors("cifar10", "test", components=5)

    def must_not_run(*arguments: object) -> None:
        raise AssertionError("components were fitted again")

    monkeypatch.setattr(preparation, "principal_components", must_not_run)
    for split, before in (("train", first), ("test", test)):
        again = data.tensors("cifar10", split, components=5)
        assert torch.equal(again.inputs, before.inputs)
        assert torch.equal(again.labels, before.labels)
        assert (again.classes, again.fingerprint) == (before.classes, before.fingerprint)
    for other in ({"components": 6}, {"components": 5, "images": 9}, {"components": 5, "side": 16}):
        with pytest.raises(AssertionError, match="fitted again"):
            data.tensors("cifar10", **other)  # type: ignore[arg-type]


def test_new_files_make_new_components(cifar: Official) -> None:
    before = data.tensors("cifar10", components=5)
    cifar.cifar10(cifar.pixels(25, seed=7), [0] * 25)
    after = data.tensors("cifar10", components=5)
    assert len(after) == 25
    assert before.fingerprint != after.fingerprint


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut short", b"not an archive"])
def test_a_damaged_memory_is_made_anew(content: bytes, cifar: Official) -> None:
    before = data.tensors("cifar10", components=5)
    for path in (cifar.folder / "derived").iterdir():
        path.write_bytes(content)
    assert torch.equal(data.tensors("cifar10", components=5).inputs, before.inputs)


def test_a_folder_that_cannot_be_written_is_tolerated(
    cifar: Official, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(preparation, "replacing", refuse)
    assert data.tensors("cifar10", components=5).inputs.shape == (30, 5)
    assert not (cifar.folder / "derived").exists()


def test_side_averages_blocks(official: Official) -> None:
    images = official.pixels(6, 96)
    official.stl10(images, [1, 2, 3, 4, 5, 6])
    got = data.tensors("stl10", side=32, flat=False)
    small = images.reshape(6, 32, 3, 32, 3, 3).mean(axis=(2, 4))
    rows = matches(got.inputs, reference(small, small))
    assert got.labels.tolist() == rows
    assert data.tensors("stl10", flat=False).inputs.shape == (6, 3, 96, 96)
    with pytest.raises(Refused, match="side is 40, but stl10 has images of 96×96; choose a divisor of 96"):
        data.tensors("stl10", side=40)


def test_wrong_requests_are_refused(cifar: Official) -> None:
    with pytest.raises(Refused, match="components is 128, but there are only 64 features"):
        data.tensors("digits", components=128)
    with pytest.raises(Refused, match="components is 5, which have no image shape"):
        data.tensors("cifar10", components=5, flat=False)
    with pytest.raises(Refused, match="images is 0, but must be at least 1"):
        data.tensors("cifar10", images=0)
    with pytest.raises(Refused, match="split 'valid' is unknown"):
        data.tensors("cifar10", "valid")


def test_images_all_alike_are_refused(official: Official) -> None:
    official.cifar10(np.zeros((3, 32, 32, 3), np.uint8), [0, 1, 2])
    with pytest.raises(Refused, match="cifar10 has training images that are all alike"):
        data.tensors("cifar10")
    with pytest.raises(Refused, match="components is 2, but the 3 images vary along fewer directions"):
        data.tensors("cifar10", components=2)


def test_a_missing_test_split_is_said_before_any_work(
    official: Official, monkeypatch: pytest.MonkeyPatch
) -> None:
    official.cifar10(official.pixels(30), [0] * 30)
    monkeypatch.setattr(preparation, "load", None)
    for components in (None, 5):
        with pytest.raises(DataMissing, match=r"CIFAR-10 has no test images here: .*test_batch.bin"):
            data.tensors("cifar10", "test", components=components)


def test_dtype_changes_no_value() -> None:
    single, double = data.tensors("digits"), data.tensors("digits", dtype=torch.float64)
    assert double.inputs.dtype == torch.float64
    assert torch.equal(single.inputs.double(), double.inputs)
    assert single.labels.dtype == torch.int64


def test_an_outline_has_the_shapes_of_the_tensors_and_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    options: list[dict[str, Any]] = [{}, {"images": 50, "components": 7}, {"flat": False}, {"side": 4}]
    expected = [data.tensors("digits", **each) for each in options]
    monkeypatch.setattr("skiplab.data.preparation.load", lambda *given: pytest.fail("a file was read"))
    for each, real in zip(options, expected, strict=True):
        found = data.outline("digits", **each)
        assert (found.inputs.shape, found.inputs.dtype) == (real.inputs.shape, real.inputs.dtype)
        assert (found.labels.shape, found.labels.dtype) == (real.labels.shape, real.labels.dtype)
        assert found.classes == real.classes
        assert found.inputs.device.type == "meta"
    assert data.outline("cifar100-coarse").inputs.shape == (50_000, 3072)
    with pytest.raises(Refused, match="data set 'digit' is unknown"):
        data.outline("digit")
