"""Image sets as numpy arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from skiplab.data.identity import fingerprint
from skiplab.data.reading import decode
from skiplab.data.registry import classes

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class ImageSet:
    """One split of a set: images uint8 N×H×W×C, labels int64 from 0 to classes−1."""

    images: np.ndarray = field(repr=False)
    labels: np.ndarray = field(repr=False)
    classes: int
    name: str
    fingerprint: str

    def __len__(self) -> int:
        return len(self.labels)


def load(name: str, split: str = "train") -> ImageSet:
    """Read a split of an image set in file order; digits come as 8×8×1 bytes in a split of ours."""
    images, labels = decode(name, split)
    return ImageSet(images, labels, classes(name), name, fingerprint(name))
