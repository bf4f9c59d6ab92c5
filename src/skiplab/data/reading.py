"""From a set's name to its decoded arrays: which files are there, and a clear sentence if they are not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skiplab.checks import DataDamaged, DataMissing, one_of
from skiplab.data.registry import SOURCES, SPLITS, Source, known, root

if TYPE_CHECKING:
    import numpy as np


def present(source: Source, split: str, folder: Path) -> list[list[Path]]:
    """The groups of files of a split that are in the folder, in official order."""
    groups = [[folder / name for name in group] for group in source.files[split]]
    return [group for group in groups if all(path.is_file() for path in group)]


def has_split(name: str, split: str) -> bool:
    """Whether any of a split's images are on this machine; opens no file."""
    if known(name) == "digits":
        from skiplab.data.digits import is_installed

        return is_installed()
    return bool(present(SOURCES[name], split, root()))


def need_split(name: str, split: str) -> None:
    """Say what is missing, and how to get it, unless some of a split's images are here."""
    if name in SOURCES and not has_split(name, split):
        raise DataMissing(missing_sentence(SOURCES[name], split, root()))


def is_available(name: str) -> bool:
    """Whether the set's training images are on this machine, whole or partial; opens no file."""
    return has_split(name, "train")


def decode(name: str, split: str, folder: Path | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Read a split's images (uint8 N×H×W×C) and labels (int64) from official files, checking both."""
    one_of("split", split, SPLITS)
    if known(name) == "digits":
        from skiplab.data.digits import read_digits

        return read_digits(split)
    import numpy as np

    source = SOURCES[name]
    groups = present(source, split, folder or root())
    if not groups:
        raise DataMissing(missing_sentence(source, split, folder or root()))
    try:
        parts = [_read(source, group) for group in groups]
    except DataDamaged as error:
        raise DataDamaged(f"{error}; mend it with `{source.remedy}`.") from error
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([images for images, _ in parts]), np.concatenate([labels for _, labels in parts])


def missing_sentence(source: Source, split: str, folder: Path) -> str:
    """Say which file is not there, the command that gets it, and where a file put by hand belongs."""
    first = next(name for group in source.files[split] for name in group if not (folder / name).is_file())
    what = "training" if split == "train" else "test"
    return (
        f"{source.title} has no {what} images here: {folder / first} is missing; run `{source.remedy}`, "
        "or put the official file there, or set SKIPLAB_DATA to the folder that holds it."
    )


def _read(source: Source, group: list[Path]) -> tuple[np.ndarray, np.ndarray]:
    from skiplab.data import formats

    match source.family:
        case "cifar10":
            return formats.read_cifar(group[0], (10,), 0)
        case "cifar100":
            return formats.read_cifar(group[0], (20, 100), source.label_byte)
        case "svhn":
            return formats.read_svhn(group[0])
        case _:
            return formats.read_stl10(*group)
