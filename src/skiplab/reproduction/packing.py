"""Packing a store into pieces that fit through a narrow door, and unpacking them again.

The pieces are one tar file cut every 16 MiB; the last bytes of the last piece are its SHA-256.
"""

from __future__ import annotations

import glob
import hashlib
import io
import json
import shutil
import tarfile
import tempfile
from pathlib import Path

from skiplab.checks import Refused, SkiplabError
from skiplab.files import write_folder
from skiplab.reproduction.store import Store

PIECE = 16 * 2**20
DIGEST = hashlib.sha256().digest_size


class PackDamaged(SkiplabError):
    """The pieces of a packed store do not make up what was packed."""


def pack(store: Store, file: Path, *, checkpoints: bool = False) -> list[Path]:
    """Write trials and runs (and checkpoints if asked) of a store into pieces; return their paths."""
    rooms = ("trials", "studies", *(("checkpoints",) if checkpoints else ()))
    folders = [folder for room in rooms for folder in _leaves(store.root / room)]
    if not folders:
        raise Refused(f"there is nothing to pack in {store.root}; run a study first or name another --store.")
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for folder in folders:
            archive.add(folder, arcname=folder.relative_to(store.root).as_posix())
    content = buffer.getvalue()
    content += hashlib.sha256(content).digest()
    file.parent.mkdir(parents=True, exist_ok=True)
    for old in _pieces(file):
        old.unlink()
    pieces = []
    for number, start in enumerate(range(0, len(content), PIECE)):
        piece = file.with_name(f"{file.name}.{number:03d}")
        piece.write_bytes(content[start : start + PIECE])
        pieces.append(piece)
    return pieces


def unpack(store: Store, file: Path) -> tuple[int, int]:
    """Add what a pack holds to a store; return how many folders were added and how many known."""
    pieces = _pieces(file)
    if not pieces:
        raise Refused(f"{file}.000 does not exist; name the FILE that was given to `store pack`.")
    content = b"".join(piece.read_bytes() for piece in pieces)
    body, digest = content[:-DIGEST], content[-DIGEST:]
    if hashlib.sha256(body).digest() != digest:
        raise PackDamaged(
            f"the {len(pieces)} piece(s) of {file} are damaged or not all here; copy them again."
        )
    added = known = 0
    with tempfile.TemporaryDirectory() as aside:
        with tarfile.open(fileobj=io.BytesIO(body)) as archive:
            archive.extractall(aside, filter="data")
        for folder in _leaves(Path(aside)):
            target = store.root / folder.relative_to(aside)
            if target.exists() and not _newer(folder, target):
                known += 1
                continue
            write_folder(target, lambda new, folder=folder: _fill(folder, new))  # type: ignore[misc]
            added += 1
    return added, known


def _newer(folder: Path, ours: Path) -> bool:
    """Whether a packed run finished after ours; a trial with the same key is the same trial."""
    runs = [path / "run.json" for path in (folder, ours)]
    if not all(run.exists() for run in runs):
        return False
    packed, kept = (json.loads(run.read_text())["provenance"]["finished"] for run in runs)
    return bool(packed > kept)


def _fill(source: Path, target: Path) -> None:
    for path in source.iterdir():
        shutil.copyfile(path, target / path.name)


def _leaves(root: Path) -> list[Path]:
    """Folders that hold files, below a root; half-written ones begin with a dot and are passed over."""
    found = {path.parent for path in root.rglob("*") if path.is_file()}
    return sorted(f for f in found if not any(part.startswith(".") for part in f.relative_to(root).parts))


def _pieces(file: Path) -> list[Path]:
    return sorted(file.parent.glob(f"{glob.escape(file.name)}.[0-9][0-9][0-9]"))
