#!/usr/bin/env python3
"""Carries an image set to a machine that takes few and small files: lossless WebP sheets, 10,000 images each.

    python tools/carry_data.py pack cifar10 carry/            # here
    python tools/carry_data.py unpack carry/                  # there; writes into $SKIPLAB_DATA

A sheet holds 100 × 100 images of 32 × 32 (about 17 MB); labels lie beside the sheets, one byte or two (coarse,
fine) an image. Unpacking writes the official binary format of every split whose sheets are all there.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

SPLITS = ("train", "test")
FILES = {
    "cifar10": {
        "train": [f"cifar-10-batches-bin/data_batch_{k}.bin" for k in range(1, 6)],
        "test": ["cifar-10-batches-bin/test_batch.bin"],
    },
    "cifar100": {"train": ["cifar-100-binary/train.bin"], "test": ["cifar-100-binary/test.bin"]},
}
LABEL_BYTES = {"cifar10": 1, "cifar100": 2}
SHEET = 10_000


def pack(name: str, root: Path, out: Path) -> None:
    """Write the sheets and labels of both splits."""
    out.mkdir(parents=True, exist_ok=True)
    labels = LABEL_BYTES[name]
    for split in SPLITS:
        raw = np.concatenate([np.fromfile(root / file, "u1") for file in FILES[name][split]])
        raw = raw.reshape(-1, labels + 3072)
        raw[:, :labels].tofile(out / f"{name}-{split}-labels.u1")
        pixels = raw[:, labels:].reshape(-1, 100, 100, 3, 32, 32).transpose(0, 1, 4, 2, 5, 3)
        for number, sheet in enumerate(pixels.reshape(-1, 3200, 3200, 3)):
            file = out / f"{name}-{split}-{number}.webp"
            Image.fromarray(sheet).save(file, lossless=True, quality=60, method=3)
            print(file, flush=True)


def unpack(source: Path, root: Path) -> None:
    """Write the official binary files of every set whose sheets are all there."""
    for name, splits in FILES.items():
        for split, files in splits.items():
            labels = source / f"{name}-{split}-labels.u1"
            count = labels.stat().st_size // LABEL_BYTES[name] if labels.exists() else 0
            sheets = [source / f"{name}-{split}-{number}.webp" for number in range(count // SHEET)]
            if not sheets or not all(sheet.exists() for sheet in sheets):
                continue
            pixels = np.stack([np.asarray(Image.open(sheet)) for sheet in sheets])
            pixels = pixels.reshape(-1, 100, 32, 100, 32, 3).transpose(0, 1, 3, 5, 2, 4).reshape(count, 3072)
            raw = np.concatenate([np.fromfile(labels, "u1").reshape(count, -1), pixels], 1)
            for file, part in zip(files, np.array_split(raw, len(files)), strict=True):
                (root / file).parent.mkdir(parents=True, exist_ok=True)
                part.tofile(root / file)
            print(f"{name} {split}: {count} images", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))
    from skiplab import data

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    doing = parser.add_subparsers(dest="doing", required=True)
    packing, unpacking = doing.add_parser("pack"), doing.add_parser("unpack")
    packing.add_argument("name")
    for each in (packing, unpacking):
        each.add_argument("directory", type=Path)
    given = parser.parse_args()
    if given.doing == "pack":
        pack(given.name, data.root(), given.directory)
    else:
        unpack(given.directory, data.root())
