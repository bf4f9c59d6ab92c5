"""The images that the convolutional networks of figures 5 and 6 see."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from skiplab.data import TensorSet

LEAST_SIDE = 16


@functools.lru_cache(maxsize=2)
def samples_of(name: str, split: str, images: int | None, side: int | None, device: str) -> TensorSet:
    """The images of a split; kept for the next trial, which mostly asks for the same."""
    from skiplab import data

    side = None if name == "digits" else side
    return _enlarged(data.tensors(name, split, images=images, side=side, flat=False, device=device))


def outline_of(name: str, images: int | None, side: int | None) -> TensorSet:
    """The shapes of the training images that ``samples_of`` gives, without numbers."""
    from skiplab import data

    side = None if name == "digits" else side
    return _enlarged(data.outline(name, images=images, side=side, flat=False))


def _enlarged(samples: TensorSet) -> TensorSet:
    """The networks halve images four times; smaller ones, such as digits, are enlarged by repeating pixels."""
    inputs = samples.inputs
    while inputs.shape[-1] < LEAST_SIDE:
        inputs = inputs.repeat_interleave(2, dim=-1).repeat_interleave(2, dim=-2)
    return dataclasses.replace(samples, inputs=inputs)
