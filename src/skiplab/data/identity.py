"""What a set is, as a hash of its decoded arrays: the same by whatever route the files came.

Hashing reads every file, so the result is remembered in ``fingerprints.json`` beside them, for as long as
their sizes and times of change stay the same. In a folder that cannot be written it is remembered for the
life of the process.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.checks import DataMissing
from skiplab.data.reading import decode, missing_sentence, present
from skiplab.data.registry import SOURCES, SPLITS, Hashes, known, root
from skiplab.files import replacing

if TYPE_CHECKING:
    import numpy as np

FILE = "fingerprints.json"

# One (path, size, time of change in ns) for each file of a split.
Signature = tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Digest:
    """A split's identity: how many images, and the sha256 of images and labels."""

    count: int
    images: str
    labels: str

    @property
    def hashes(self) -> Hashes:
        """The two hashes, to compare with the official ones."""
        return Hashes(self.images, self.labels)


def fingerprint(name: str) -> str:
    """Return the sha256 that identifies what ``load(name)`` gives, from the splits that are present."""
    if known(name) == "digits":
        from skiplab.data.digits import FINGERPRINT

        return FINGERPRINT
    return combine(_digests(name))


def part_of(name: str) -> str:
    """Say how much of a set is here, as in '40,000 of 50,000 train images'; nothing where it is whole."""
    if known(name) == "digits":
        return ""
    found, whole = _digests(name), SOURCES[name].complete
    counts = {split: found[split].count if split in found else 0 for split in whole}
    short = [
        f"{count:,} of {whole[split]:,} {split} images"
        for split, count in counts.items()
        if count < whole[split]
    ]
    return " and ".join(short)


def combine(digests: dict[str, Digest]) -> str:
    """Hash the splits' hashes into one."""
    lines = [f"{split} {digest.images} {digest.labels}\n" for split, digest in digests.items()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def digest_arrays(images: np.ndarray, labels: np.ndarray) -> Digest:
    """Hash decoded arrays: images as uint8 N×H×W×C, labels as bytes."""
    import numpy as np

    pixels = hashlib.sha256(np.ascontiguousarray(images).data).hexdigest()
    return Digest(len(labels), pixels, hashlib.sha256(labels.astype(np.uint8).tobytes()).hexdigest())


def digest_files(name: str, split: str) -> Digest | None:
    """The identity of one split on disk, remembered; None if the split is not there."""
    folder = root()
    paths = [path for group in present(SOURCES[name], split, folder) for path in group]
    if not paths:
        return None
    # Taken before the files are read: a file that changes meanwhile is hashed again the next time.
    stats = [(path, path.stat()) for path in paths]
    signature = tuple((path.relative_to(folder).as_posix(), at.st_size, at.st_mtime_ns) for path, at in stats)
    return _digest(name, split, folder, signature)


def _digests(name: str) -> dict[str, Digest]:
    if known(name) == "digits":
        return {split: digest_arrays(*decode(name, split)) for split in SPLITS}
    found = {split: digest for split in SPLITS if (digest := digest_files(name, split))}
    if "train" not in found:
        raise DataMissing(missing_sentence(SOURCES[name], "train", root()))
    return found


@lru_cache(maxsize=64)
def _digest(name: str, split: str, folder: Path, signature: Signature) -> Digest:
    key, files = f"{name}/{split}", [list(row) for row in signature]
    entry = _remembered(folder).get(key)
    if isinstance(entry, dict) and entry.get("files") == files:
        with suppress(KeyError, TypeError):
            return Digest(**entry["digest"])
    digest = digest_arrays(*decode(name, split, folder))
    # Read again just before writing, so that two processes seldom undo each other's entry.
    entries = _remembered(folder) | {key: {"files": files, "digest": asdict(digest)}}
    with suppress(OSError), replacing(folder / FILE) as aside:
        aside.write_text(json.dumps(entries, indent=1, sort_keys=True))
    return digest


def _remembered(folder: Path) -> dict[str, Any]:
    # Only a memory: whatever is wrong with it, the files themselves decide.
    try:
        entries = json.loads((folder / FILE).read_text())
    except (OSError, ValueError):
        return {}
    return entries if isinstance(entries, dict) else {}
