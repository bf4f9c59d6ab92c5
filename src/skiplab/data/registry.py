"""The image sets by name: their official files, sizes, checksums and homes. Imports nothing heavy."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from skiplab.checks import one_of

SPLITS = ("train", "test")


@dataclass(frozen=True)
class Download:
    """One official file on the network; an archive holds the set's files under their usual paths."""

    url: str
    sha256: str  # as TensorFlow Datasets lists it (url_checksums/); some homes speak http only
    archive: bool

    @property
    def file(self) -> str:
        """The file's name, the last part of its address."""
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Hashes:
    """sha256 of a split's decoded arrays: images as uint8 N×H×W×C, labels as bytes from 0."""

    images: str
    labels: str


@dataclass(frozen=True)
class Source:
    """An image set in its official files.

    ``files`` lists, for each split, groups of files that belong together; a split may be partial, so one
    whole group is enough. ``complete`` is the official number of images in each split.
    """

    name: str
    family: str
    title: str
    classes: int
    shape: tuple[int, int, int]
    files: Mapping[str, tuple[tuple[str, ...], ...]]
    complete: Mapping[str, int]
    downloads: tuple[Download, ...]
    label_byte: int = 0
    hashes: Mapping[str, Hashes] = field(default_factory=dict)

    @property
    def remedy(self) -> str:
        """The command that gets or mends the set."""
        return f"skiplab data fetch {self.family}"


CIFAR10 = Source(
    name="cifar10",
    family="cifar10",
    title="CIFAR-10",
    classes=10,
    shape=(32, 32, 3),
    files={
        "train": tuple((f"cifar-10-batches-bin/data_batch_{batch}.bin",) for batch in range(1, 6)),
        "test": (("cifar-10-batches-bin/test_batch.bin",),),
    },
    complete={"train": 50_000, "test": 10_000},
    downloads=(
        Download(
            "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            archive=True,
        ),
    ),
    hashes={
        "train": Hashes(
            "47af8b02cfcfb6cdf3dbbd1969ad7f1b70f4413f6f80f437b020ee4e5bc8304a",
            "2b7cd2f24487317614016b72ffd53071c3062f592f0eb300c18a770d41ae1253",
        ),
        "test": Hashes(
            "f9b1e2130bab680db56eb06d886f7f1ad0f1183907ceff4659d1735c890f5b04",
            "cec8a24a1e92aa2ecaa0bbd3dbfa86bf6cd8759fbd209a832824c8cf0afca9d5",
        ),
    },
)


def _cifar100(name: str, classes: int, label_byte: int) -> Source:
    return Source(
        name=name,
        family="cifar100",
        title="CIFAR-100",
        classes=classes,
        shape=(32, 32, 3),
        files={"train": (("cifar-100-binary/train.bin",),), "test": (("cifar-100-binary/test.bin",),)},
        complete={"train": 50_000, "test": 10_000},
        downloads=(
            Download(
                "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
                archive=True,
            ),
        ),
        label_byte=label_byte,
    )


SVHN = Source(
    name="svhn",
    family="svhn",
    title="SVHN",
    classes=10,
    shape=(32, 32, 3),
    files={"train": (("train_32x32.mat",),), "test": (("test_32x32.mat",),)},
    complete={"train": 73_257, "test": 26_032},
    downloads=(
        Download(
            "http://ufldl.stanford.edu/housenumbers/train_32x32.mat",
            "435e94d69a87fde4fd4d7f3dd208dfc32cb6ae8af2240d066de1df7508d083b8",
            archive=False,
        ),
        Download(
            "http://ufldl.stanford.edu/housenumbers/test_32x32.mat",
            "cdce80dfb2a2c4c6160906d0bd7c68ec5a99d7ca4831afa54f09182025b6a75b",
            archive=False,
        ),
    ),
)

STL10 = Source(
    name="stl10",
    family="stl10",
    title="STL-10",
    classes=10,
    shape=(96, 96, 3),
    files={
        "train": (("stl10_binary/train_X.bin", "stl10_binary/train_y.bin"),),
        "test": (("stl10_binary/test_X.bin", "stl10_binary/test_y.bin"),),
    },
    complete={"train": 5_000, "test": 8_000},
    downloads=(
        Download(
            "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz",
            "f31fd99273a1acb8609c8db427cebb1de3f71de77758cdc0e22956e1289b9866",
            archive=True,
        ),
    ),
)

SOURCES: Mapping[str, Source] = {
    source.name: source
    for source in (
        CIFAR10,
        _cifar100("cifar100-coarse", 20, 0),
        _cifar100("cifar100-fine", 100, 1),
        SVHN,
        STL10,
    )
}
NAMES: tuple[str, ...] = (*SOURCES, "digits")
# What people read; two sets of one family differ in how many labels there are.
TITLES: Mapping[str, str] = {
    name: source.title + (f" ({source.classes} labels)" if name != source.family else "")
    for name, source in SOURCES.items()
} | {"digits": "Digits"}
FAMILIES: tuple[str, ...] = ("cifar10", "cifar100", "svhn", "stl10")


def root() -> Path:
    """The folder that holds the image sets: $SKIPLAB_DATA, else the user's cache."""
    chosen = os.environ.get("SKIPLAB_DATA")
    if chosen:
        return Path(chosen).expanduser().absolute()
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification says that a relative path there is to be ignored.
    return (cache if cache.is_absolute() else Path.home() / ".cache") / "skiplab"


def known(name: str) -> str:
    """Return the name of an image set, or refuse it and suggest near ones."""
    return one_of("data set", name, NAMES)


def family(name: str) -> str:
    """The set of files behind a name: cifar100-fine and cifar100-coarse share cifar100."""
    if name in FAMILIES:
        return name
    known(name)
    return SOURCES[name].family if name in SOURCES else name


def classes(name: str) -> int:
    """How many classes a set has; the digits, which are no files of ours, have ten."""
    return SOURCES[known(name)].classes if name in SOURCES else 10


def title(name: str) -> str:
    """What a set is called in figures and sentences: "CIFAR-100 (20 labels)"; other names stay."""
    return TITLES.get(name, name)


def with_titles(text: str) -> str:
    """A text with image sets called by their titles: "svhn, gain 1" is "SVHN, gain 1".

    So are sentences and pages for readers; what programs read, a terminal beside names that one may type, and a
    command in `backticks` have the names.
    """
    named = "|".join(sorted(SOURCES, key=len, reverse=True))
    return re.sub(rf"`[^`]*`|\b(?:{named})\b(?!-)", lambda found: title(found[0]), text)


def remedy(name: str) -> str:
    """The command that gets a set, e.g. ``skiplab data fetch cifar10``."""
    group = family(name)
    return f"skiplab data fetch {group}" if group in FAMILIES else "pip install scikit-learn"
