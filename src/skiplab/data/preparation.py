"""Image sets as standardised tensors, whole or reduced to their principal components.

Standardised means (*ours*; the papers do not say): subtract each feature's mean over the training images
chosen, then divide by one number, the standard deviation over all features, so that features keep their
relative scales. Components are divided by one number in the same way.

The images are taken in a fixed random order, so that fewer images are the first of more images.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from skiplab.checks import at_least, one_of, require
from skiplab.data import digits
from skiplab.data.components import principal_components
from skiplab.data.identity import fingerprint
from skiplab.data.imagesets import ImageSet, load
from skiplab.data.reading import has_split, need_split
from skiplab.data.registry import SOURCES, SPLITS, known, root
from skiplab.files import replacing
from skiplab.randomness import numpy_generator

# Raise it when the numbers below would move; prepared components on disk are then made anew.
VERSION = 1
CHUNK = 512


@dataclass(frozen=True)
class TensorSet:
    """Inputs (N×D, or N×C×H×W), labels int64 (N) from 0, and what they are."""

    inputs: torch.Tensor = field(repr=False)
    labels: torch.Tensor = field(repr=False)
    classes: int
    name: str
    fingerprint: str

    def __len__(self) -> int:
        return len(self.labels)


def tensors(
    name: str,
    split: str = "train",
    *,
    images: int | None = None,
    components: int | None = None,
    side: int | None = None,
    flat: bool = True,
    device: str | torch.device = "cpu",
    dtype: torch.dtype = torch.float32,
) -> TensorSet:
    """Read a split of an image set as standardised tensors.

    ``images`` takes at most that many, for training and for testing; mean, scale and components always
    come from the training images so chosen. ``components`` reduces the inputs to that many principal
    components (remembered under ``root()/derived``). ``side`` first averages neighbouring pixels down to
    side×side. ``flat=False`` keeps images as C×H×W. Values are made in float32 whatever the ``dtype``, so
    that a float64 run sees the same inputs.
    """
    one_of("split", split, SPLITS)
    if images is not None:
        at_least("images", images, 1)
    require(
        flat or components is None,
        f"components is {components}, which have no image shape; leave flat=True or components=None.",
    )
    need_split(name, split)
    if components is None:
        prepared = _whole(name, split, images, side)
    else:
        prepared = _remembered_components(name, split, images, components, side)
    inputs = torch.from_numpy(prepared.inputs)
    if not flat:
        inputs = inputs.reshape(len(inputs), *prepared.shape)
    labels = torch.from_numpy(prepared.labels).to(device)
    return TensorSet(inputs.to(device, dtype), labels, prepared.classes, name, prepared.fingerprint)


def outline(
    name: str,
    *,
    images: int | None = None,
    components: int | None = None,
    side: int | None = None,
    flat: bool = True,
) -> TensorSet:
    """The shapes of what ``tensors`` gives for training, on torch's "meta" device: no file is read."""
    source = SOURCES.get(known(name))
    count, classes, image = digits.TRAINING, digits.CLASSES, digits.SHAPE
    if source is not None:
        count, classes, image = source.complete["train"], source.classes, source.shape
    height, width, channels = image
    count, height, width = min(count, images or count), side or height, side or width
    shape = (components or channels * height * width,) if flat else (channels, height, width)
    inputs = torch.empty(count, *shape, device="meta")
    labels = torch.empty(count, dtype=torch.int64, device="meta")
    return TensorSet(inputs, labels, classes, name, "")


@dataclass(frozen=True)
class _Prepared:
    inputs: np.ndarray
    labels: np.ndarray
    shape: tuple[int, ...]
    classes: int
    fingerprint: str


def _whole(name: str, split: str, images: int | None, side: int | None) -> _Prepared:
    chosen, features, shape = _features(name, "train", images, side)
    mean = features.mean(axis=0, dtype=np.float64)
    # mean((x−μ)²) = mean(x²) − mean(μ²), with whole-number sums that float64 holds exactly.
    squares = sum(float(part @ part) for rows in _rows(features) for part in [_doubles(features[rows])])
    scale = np.sqrt(squares / features.size - (mean**2).mean())
    require(scale > 0, f"{name} has training images that are all alike, which cannot be standardised.")
    if split != "train":
        chosen, features, shape = _features(name, split, images, side)
    inputs = np.empty(features.shape, np.float32)
    for rows in _rows(features):
        inputs[rows] = (features[rows] - mean) / scale
    return _Prepared(inputs, chosen.labels, shape, chosen.classes, chosen.fingerprint)


def _components(name: str, images: int | None, components: int, side: int | None) -> dict[str, _Prepared]:
    """Fit the components once, and give every split that is present in their terms."""
    chosen, features, _ = _features(name, "train", images, side)
    fitted = principal_components(features, components)
    # The variances are those of the projected training images, whose means are zero.
    scale = np.sqrt(fitted.variances.mean())
    made = {}
    for split in SPLITS:
        if split != "train":
            if not has_split(name, split):
                continue
            chosen, features, _ = _features(name, split, images, side)
        inputs = (fitted.project(features) / scale).astype(np.float32)
        made[split] = _Prepared(inputs, chosen.labels, (components,), chosen.classes, chosen.fingerprint)
    return made


def _remembered_components(
    name: str, split: str, images: int | None, components: int, side: int | None
) -> _Prepared:
    identity = fingerprint(name)
    settings = [VERSION, identity, images, components, side]
    key = hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:24]
    paths = {split: root() / "derived" / f"{name}-{components}-{key}-{split}.npz" for split in SPLITS}
    # A missing or damaged file is only a memory lost.
    lost = suppress(OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)
    with lost, paths[split].open("rb") as file, np.load(file) as kept:
        classes = int(kept["classes"])
        return _Prepared(kept["inputs"], kept["labels"], (components,), classes, identity)
    made = _components(name, images, components, side)
    for each, prepared in made.items():
        with suppress(OSError):
            _remember(paths[each], prepared)
    return made[split]


def _remember(path: Path, made: _Prepared) -> None:
    with replacing(path) as aside, aside.open("wb") as file:
        np.savez(file, inputs=made.inputs, labels=made.labels, classes=np.int64(made.classes))


def _features(
    name: str, split: str, images: int | None, side: int | None
) -> tuple[ImageSet, np.ndarray, tuple[int, int, int]]:
    """The chosen part of a split, and its pixels as whole numbers N×(C·H·W)."""
    whole = load(name, split)
    # The same order for every set of the same size. Sorting uniform draws depends on less of numpy than
    # its permutation(), whose stream may change between versions.
    order = numpy_generator("data", "order", split).random(len(whole)).argsort(kind="stable")[:images]
    pixels = whole.images[order]
    if side is not None:
        pixels = _pooled(name, pixels, side)
    planes = pixels.transpose(0, 3, 1, 2)
    chosen = ImageSet(pixels, whole.labels[order], whole.classes, name, whole.fingerprint)
    return chosen, np.ascontiguousarray(planes).reshape(len(planes), -1), planes.shape[1:]


def _pooled(name: str, pixels: np.ndarray, side: int) -> np.ndarray:
    """Sum square blocks of pixels; the scale of a mean is lost in standardising, and sums stay whole."""
    number, height, _, channels = pixels.shape
    require(
        1 <= side <= height and height % side == 0,
        f"side is {side}, but {name} has images of {height}×{height}; choose a divisor of {height}.",
    )
    step = height // side
    blocks = pixels.reshape(number, side, step, side, step, channels)
    return blocks.sum(axis=(2, 4), dtype=np.int32)


def _rows(features: np.ndarray) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, len(features), CHUNK)]


def _doubles(part: np.ndarray) -> np.ndarray:
    return part.astype(np.float64).ravel()
