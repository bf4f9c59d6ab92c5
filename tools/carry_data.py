#!/usr/bin/env python3
"""Carries an image set to a machine that takes few and small files: lossless WebP sheets, 10,000 images each.

    python tools/carry_data.py pack cifar10 carry/            # here
    python tools/carry_data.py unpack carry/                  # there; writes into $SKIPLAB_DATA

A sheet holds 100 × 100 training images of 32 × 32 (about 17 MB); labels lie beside the sheets, one byte or
two (coarse, fine) an image. Unpacking writes the official binary format of whatever sheets are there, as soon
as all five of a set are.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image

SHEETS = 5
FOLDERS = {"cifar10": "cifar-10-batches-bin", "cifar100": "cifar-100-binary"}


def records(name: str, root: Path) -> tuple[np.ndarray, np.ndarray]:
    """Labels (N, 1 or 2) and pixels (N, 32, 32, 3) of a training set in its official binary format."""
    if name == "cifar10":
        files = [root / FOLDERS[name] / f"data_batch_{k}.bin" for k in range(1, SHEETS + 1)]
    else:
        files = [root / FOLDERS[name] / "train.bin"]
    labels = 1 if name == "cifar10" else 2
    raw = np.concatenate([np.fromfile(file, "u1") for file in files]).reshape(-1, labels + 3072)
    return raw[:, :labels], raw[:, labels:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)


def pack(name: str, root: Path, out: Path) -> None:
    """Write sheets and labels."""
    out.mkdir(parents=True, exist_ok=True)
    labels, pixels = records(name, root)
    labels.tofile(out / f"{name}-labels.u1")
    for number in range(SHEETS):
        part = pixels[10_000 * number : 10_000 * (number + 1)]
        sheet = part.reshape(100, 100, 32, 32, 3).transpose(0, 2, 1, 3, 4).reshape(3200, 3200, 3)
        Image.fromarray(sheet).save(out / f"{name}-{number}.webp", lossless=True, quality=60, method=3)
        print(f"{name}-{number}.webp", flush=True)


def unpack(source: Path, root: Path) -> None:
    """Write the official binary files of every set whose sheets are all there."""
    for name in FOLDERS:
        sheets = [source / f"{name}-{number}.webp" for number in range(SHEETS)]
        if not all(sheet.exists() for sheet in sheets):
            continue
        pixels = np.concatenate(
            [
                np.asarray(Image.open(sheet))
                .reshape(100, 32, 100, 32, 3)
                .transpose(0, 2, 4, 1, 3)
                .reshape(10_000, 3072)
                for sheet in sheets
            ]
        )
        labels = np.fromfile(source / f"{name}-labels.u1", "u1").reshape(len(pixels), -1)
        raw = np.concatenate([labels, pixels], 1)
        folder = root / FOLDERS[name]
        folder.mkdir(parents=True, exist_ok=True)
        if name == "cifar10":
            for number in range(SHEETS):
                raw[10_000 * number : 10_000 * (number + 1)].tofile(folder / f"data_batch_{number + 1}.bin")
        else:
            raw.tofile(folder / "train.bin")
        print(f"{name}: {len(raw)} images in {folder}")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
    from skiplab import data

    if len(sys.argv) == 4 and sys.argv[1] == "pack":
        pack(sys.argv[2], data.root(), Path(sys.argv[3]))
    elif len(sys.argv) == 3 and sys.argv[1] == "unpack":
        unpack(Path(sys.argv[2]), data.root())
    else:
        sys.exit(__doc__)
