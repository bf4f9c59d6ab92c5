"""The official file formats, read into uint8 images N×H×W×C and int64 labels that count from 0.

A file that does not fit its format raises DataDamaged with a clause that names the file and what was
expected; reading.py adds the command that mends it. A file may hold fewer images than the official one.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skiplab.checks import DataDamaged
from skiplab.files import replacing

Arrays = tuple[np.ndarray, np.ndarray]

CIFAR_PIXELS = 3 * 32 * 32
STL_PIXELS = 3 * 96 * 96


def read_cifar(path: Path, label_classes: tuple[int, ...], label_byte: int) -> Arrays:
    """Read a CIFAR batch: records of one byte a label, then 3072 bytes of red, green and blue planes.

    ``label_classes`` is (10,) for CIFAR-10 and (20, 100), coarse then fine, for CIFAR-100.
    """
    record = len(label_classes) + CIFAR_PIXELS
    records = _bytes(path, record, "record of a label and 3072 pixels").reshape(-1, record)
    for byte, classes in enumerate(label_classes):
        _check_labels(path, records[:, byte], 0, classes - 1)
    planes = records[:, len(label_classes) :].reshape(-1, 3, 32, 32)
    return _images(planes.transpose(0, 2, 3, 1)), records[:, label_byte].astype(np.int64)


def write_cifar(path: Path, images: np.ndarray, *labels: np.ndarray) -> None:
    """Write images (N×32×32×3) and one array of labels for each label byte as a CIFAR batch."""
    planes = images.transpose(0, 3, 1, 2).reshape(len(images), CIFAR_PIXELS)
    columns = [np.asarray(label, np.uint8)[:, None] for label in labels]
    with replacing(path) as aside:
        np.concatenate([*columns, planes.astype(np.uint8, copy=False)], axis=1).tofile(aside)


def read_svhn(path: Path) -> Arrays:
    """Read SVHN's cropped digits: X is 32×32×3×N, y is N×1 with the digit 0 stored as 10."""
    from scipy.io import loadmat

    try:
        content = loadmat(path, variable_names=["X", "y"])
        pixels, labels = content["X"], content["y"].ravel()
    except Exception as error:  # scipy raises almost anything on a damaged file
        raise DataDamaged(
            f"{path} is truncated or not a MATLAB file with X and y ({type(error).__name__})"
        ) from error
    if pixels.dtype != np.uint8 or pixels.shape != (32, 32, 3, len(labels)) or len(labels) == 0:
        raise DataDamaged(
            f"{path} holds X of shape {pixels.shape} and type {pixels.dtype} with {len(labels)} labels, "
            "where 32×32×3×N bytes and N labels were expected"
        )
    _check_labels(path, labels, 1, 10)
    return _images(pixels.transpose(3, 0, 1, 2)), labels.astype(np.int64) % 10


def read_stl10(pixel_path: Path, label_path: Path) -> Arrays:
    """Read STL-10: 27648 bytes an image in red, green and blue planes, column by column; labels 1 to 10."""
    planes = _bytes(pixel_path, STL_PIXELS, "image of 3 planes of 96×96 pixels").reshape(-1, 3, 96, 96)
    labels = _bytes(label_path, 1, "label")
    if len(planes) != len(labels):
        raise DataDamaged(
            f"{pixel_path} holds {len(planes)} images and {label_path.name} {len(labels)} labels, "
            "where as many of each were expected"
        )
    _check_labels(label_path, labels, 1, 10)
    return _images(planes.transpose(0, 3, 2, 1)), labels.astype(np.int64) - 1


def _bytes(path: Path, record: int, meaning: str) -> np.ndarray:
    content = np.fromfile(path, np.uint8)
    if content.size == 0 or content.size % record:
        raise DataDamaged(
            f"{path} has {content.size:,} bytes, where a multiple of {record:,} was expected "
            f"({record:,} for each {meaning})"
        )
    return content


def _check_labels(path: Path, labels: np.ndarray, least: int, most: int) -> None:
    # Written so that a label that is not a number fails too.
    wrong = labels[~((labels >= least) & (labels <= most))]
    if wrong.size:
        raise DataDamaged(f"{path} has a label {wrong[0]}, where {least} to {most} were expected")


def _images(view: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(view)
