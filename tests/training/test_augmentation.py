"""Crops and flips against a naive oracle, image by image."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.training.augmentation import CropAndFlip

CPU = torch.device("cpu")


def one_by_one(images: Tensor, indices: Tensor, draws: Tensor, padding: int) -> np.ndarray:
    """The oracle: pad one image, cut, mirror."""
    members, size = indices.shape
    _, channels, height, width = images.shape
    found = np.empty((members, size, channels, height, width))
    for member in range(members):
        for place in range(size):
            index = int(indices[member, place])
            down, right, flip = (int(draws[kind, member, index]) for kind in range(3))
            padded = np.pad(images[index].numpy(), ((0, 0), (padding, padding), (padding, padding)))
            crop = padded[:, down : down + height, right : right + width]
            found[member, place] = crop[:, :, ::-1] if flip else crop
    return found


@pytest.mark.parametrize("padding", [0, 1, 4, 7])
def test_batches_are_those_of_the_oracle(padding: int) -> None:
    images = torch.randn(9, 3, 6, 5, generator=torch_generator("images"), dtype=torch.float64)
    augmentation = CropAndFlip(padding)
    draws = augmentation.draw((0, 1), 0, 9, CPU)
    indices = torch.tensor([[0, 8, 3, 3], [7, 1, 2, 0]])
    found = augmentation.batch(images, indices, draws)
    assert found.dtype == torch.float64
    assert np.array_equal(found.numpy(), one_by_one(images, indices, draws, padding))


@pytest.mark.parametrize(("down", "right"), [(0, 0), (0, 4), (4, 0), (4, 4), (2, 2)])
@pytest.mark.parametrize("flip", [0, 1])
def test_the_extreme_crops(down: int, right: int, flip: int) -> None:
    images = 1 + torch.arange(16, dtype=torch.float64).reshape(1, 1, 4, 4)
    draws = torch.tensor([down, right, flip], dtype=torch.uint8).reshape(3, 1, 1)
    indices = torch.zeros(1, 1, dtype=torch.int64)
    found = CropAndFlip(2).batch(images, indices, draws)
    assert np.array_equal(found.numpy(), one_by_one(images, indices, draws, 2))


def test_a_pixel_that_is_not_finite_does_not_leak_into_the_padding() -> None:
    images = torch.full((1, 1, 2, 2), torch.nan)
    draws = torch.tensor([0, 0, 0], dtype=torch.uint8).reshape(3, 1, 1)
    found = CropAndFlip(1).batch(images, torch.zeros(1, 1, dtype=torch.int64), draws)
    assert found.isnan().flatten().tolist() == [False, False, False, True]


def test_draws_cover_every_place_evenly() -> None:
    draws = CropAndFlip(2).draw((5,), 0, 20_000, CPU)
    for kind, choices in ((0, 5), (1, 5), (2, 2)):
        counts = torch.bincount(draws[kind, 0].long(), minlength=choices)
        assert len(counts) == choices
        expected, spread = 20_000 / choices, (20_000 * (1 / choices) * (1 - 1 / choices)) ** 0.5
        assert bool(((counts - expected).abs() < 5 * spread).all())


def test_draws_depend_on_the_members_own_seed_and_the_epoch() -> None:
    augmentation = CropAndFlip()
    together = augmentation.draw((5, 6), 3, 100, CPU)
    assert together.shape == (3, 2, 100)
    assert torch.equal(together[:, 1], augmentation.draw((6,), 3, 100, CPU)[:, 0])
    assert not torch.equal(together[:, 0], together[:, 1])
    assert not torch.equal(together, augmentation.draw((5, 6), 4, 100, CPU))


def test_flat_images_and_negative_paddings_are_refused() -> None:
    with pytest.raises(Refused, match="padding is -1, but must be at least 0"):
        CropAndFlip(-1)
    draws = torch.zeros(3, 1, 9, dtype=torch.uint8)
    with pytest.raises(Refused, match=r"images of shape \(9, 30\) cannot be cropped; pass them as N×C×H×W"):
        CropAndFlip().batch(torch.zeros(9, 30), torch.zeros(1, 1, dtype=torch.int64), draws)
