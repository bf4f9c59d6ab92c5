"""What the measurements of yu2019's networks share: layers, noise, batches of images, distributions as rows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor

    from skiplab.data import TensorSet

Found = tuple[str, int, "Tensor"]  # a quantity, a layer, and its values, one per network
TENTH = 10  # the layer of figure 3; the last where there are fewer
# Images at once by kind of device: bounds memory, changes nothing; a GPU waits for many small passes.
CHUNKS = {"cpu": 500, "cuda": 2500}
SHARES = tuple(percent / 100 for percent in range(0, 101, 2))
# Sizes of weight noise: relative to a layer's norm, or the deviation of every weight.
NOISE = {"relative": (0.05, 0.1, 0.2), "absolute": (0.005, 0.01, 0.02)}


def first(samples: TensorSet, count: int | None) -> TensorSet:
    """The first images of a set, all if no number is given."""
    return dataclasses.replace(samples, inputs=samples.inputs[:count], labels=samples.labels[:count])


def parts(samples: TensorSet, size: int | None = None) -> list[tuple[Tensor, Tensor]]:
    """Images and labels in batches, of as many as suit the device unless a size is given."""
    size = size or CHUNKS[samples.inputs.device.type]
    return list(zip(samples.inputs.split(size), samples.labels.split(size), strict=True))


def distribution(quantity: str, values: Tensor) -> Iterator[Found]:
    """The values (E, numbers) at the shares of ``SHARES``, whose place takes that of a layer."""
    for number, share in enumerate(SHARES):
        # torch's quantile refuses more than 16 million numbers.
        sorted_place = 1 + round(share * (values.shape[1] - 1))
        yield quantity, number, values.nan_to_num(nan=math.inf).kthvalue(sorted_place, dim=1).values
