"""Packing a store into pieces that fit through a narrow door, and unpacking them again.

The pieces are one tar file cut every 16 MiB, with its SHA-256 at the end. The archive's last file is a manifest
with the SHA-256 of every other; packs from before there was one are read too. A pack may come from anyone:
only paths that a store has are taken from it, and nothing is written before all of it has been checked.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from skiplab.checks import Refused, SkiplabError
from skiplab.files import turn, write_folder
from skiplab.reproduction import archive
from skiplab.reproduction.archive import Member, shown
from skiplab.reproduction.pieces import CHUNK, PackDamaged, Pieces, Writer, piece, put_back, writing
from skiplab.reproduction.store import RUN_FILES, Store

__all__ = ["LIMIT", "MOST_FILES", "PIECE", "PackDamaged", "pack", "unpack"]

PIECE = 16 * 2**20
# Chosen by us, so that a pack cannot fill a disk unasked.
LIMIT = 16 * 2**30
MOST_FILES = 200_000
LARGEST_JSON = 64 * 2**20  # bytes; such files are read into memory
DISK_BLOCK = 4096  # what even the smallest file takes

MANIFEST = "manifest.json"
FORM = 1  # of the manifest
_WORD = r"[A-Za-z0-9](?:[A-Za-z0-9._+-]{0,62}[A-Za-z0-9])?"
_KEY = r"[0-9a-f]{1,64}"
_FOLDER = rf"trials/{_KEY}|checkpoints/{_KEY}|studies/{_WORD}/{_WORD}/{_WORD}"
# Names in lower case cannot meet on a disk that does not tell Table from table.
_NAME = r"[a-z0-9][a-z0-9_-]{0,40}(?:\.parquet|\.safetensors|\.png|\.svg|\.webp|\.json(?:\.gz)?)"

Tell = Callable[[str], None]


def _silent(sentence: str) -> None:
    """Hear a sentence and do nothing."""


@dataclass(frozen=True)
class Packed:
    """A file in a pack whose bytes have been read once; they are read again when it is unpacked."""

    member: Member
    sha256: str

    @property
    def name(self) -> str:
        """Its name in its folder."""
        return self.member.path.rpartition("/")[2]


def pack(store: Store, file: Path, *, checkpoints: bool = False, tell: Tell = _silent) -> list[Path]:
    """Write trials and runs (and checkpoints if asked) of a store into pieces; return their paths.

    An earlier pack of the same name stays until the new one is whole. ``tell`` hears what was left out.
    """
    rooms = ("trials", "studies", *(("checkpoints",) if checkpoints else ()))
    files, strays = _sorted_out(store.root, rooms)
    if not files:
        raise Refused(f"there is nothing to pack in {store.root}; run a study first or name another --store.")
    _check_limits(store.root, [path.stat().st_size for path in files])
    try:
        with writing(file, PIECE) as writer:
            sums = {path.relative_to(store.root).as_posix(): _add(writer, store.root, path) for path in files}
            manifest = json.dumps({"form": FORM, "sha256": sums}, indent=0).encode()
            writer.write(archive.header(MANIFEST, len(manifest)) + manifest + archive.padding(len(manifest)))
            writer.write(archive.END)
    except OSError as error:
        raise _stopped(f"{store.root} could not be packed into {file}", error) from error
    if strays:
        first = shown(strays[0].relative_to(store.root).as_posix())
        tell(f"{len(strays)} file(s) that are damaged or not skiplab's were left out, such as {first}.")
    return [piece(file, number) for number in range(len(writer.paths))]


def unpack(store: Store, file: Path, *, tell: Tell = _silent) -> tuple[int, int]:
    """Add what a pack holds to a store; return how many folders were added and how many known.

    ``tell`` hears how much will be written before it is.
    """
    with suppress(OSError):  # a place that cannot be written
        put_back(file)
    with turn(file.parent, alone=False):  # a `store pack` of the same name waits with its last step
        return _unpacked(store, Pieces(file), tell)


def _unpacked(store: Store, pieces: Pieces, tell: Tell) -> tuple[int, int]:
    pieces.verify()
    folders = _checked(pieces)
    fresh = {name: held for name, held in folders.items() if _is_wanted(pieces, held, store.root / name)}
    tell(_space(store.root, pieces.file, fresh.values()))
    for done, (name, held) in enumerate(fresh.items()):
        try:
            write_folder(
                store.root / name,
                lambda folder, held=held: _fill(pieces, held, folder),  # type: ignore[misc]
                ours=("record.json", *RUN_FILES),
            )
        except OSError as error:
            raise _stopped(f"{store.root} took {done} of {len(fresh)} folder(s)", error) from error
    return len(fresh), len(folders) - len(fresh)


# Packing ------------------------------------------------------------------------------------------------


def _sorted_out(root: Path, rooms: Sequence[str]) -> tuple[list[Path], list[Path]]:
    """Return the files that can be unpacked again, and those that are damaged or somebody else put there."""
    files: list[Path] = []
    strays: list[Path] = []
    for path in sorted(found for room in rooms for found in (root / room).rglob("*")):
        place = path.relative_to(root)
        # Folders that are being written, or were when their writer was killed, begin with a dot.
        if any(part.startswith(".") for part in place.parts):
            continue
        mode = path.lstat().st_mode
        if stat.S_ISREG(mode) and _folder_of(place.as_posix()):
            files.append(path)
        elif not stat.S_ISDIR(mode):
            strays.append(path)
    damaged = {path.parent for path in files if _is_run(path.relative_to(root)) and not _is_readable(path)}
    strays += [path for path in files if path.parent in damaged]
    return [path for path in files if path.parent not in damaged], strays


def _is_run(path: PurePath) -> bool:
    return path.parts[0] == "studies" and path.name == "run.json"


def _is_readable(run: Path) -> bool:
    try:
        return run.stat().st_size <= LARGEST_JSON and _finished(json.loads(run.read_bytes())) is not None
    except (ValueError, RecursionError):
        return False


def _folder_of(path: str) -> str | None:
    """Return the folder of a path that a store may have, or None for any other."""
    found = re.fullmatch(rf"({_FOLDER})/{_NAME}", path) if len(path) <= archive.LONGEST else None
    return found[1] if found else None


def _check_limits(root: Path, sizes: Sequence[int]) -> None:
    if sum(sizes) > LIMIT or max(sizes) > archive.LARGEST or len(sizes) > MOST_FILES:
        raise Refused(
            f"{root} has {len(sizes):,} files of {_bytes(sum(sizes))} in all, the largest of {_bytes(max(sizes))}, "
            f"but a pack takes {MOST_FILES:,} files of {_bytes(LIMIT)}, none above {_bytes(archive.LARGEST)}; pack "
            "without --checkpoints or move old trials to another store."
        )


def _add(writer: Writer, root: Path, path: Path) -> str:
    """Write a file with its header, and return its SHA-256."""
    digest = hashlib.sha256()
    with path.open("rb") as source:
        size = left = os.fstat(source.fileno()).st_size
        writer.write(archive.header(path.relative_to(root).as_posix(), size))
        while left and (part := source.read(min(CHUNK, left))):
            digest.update(part)
            writer.write(part)
            left -= len(part)
    if left:
        raise SkiplabError(f"{path} became shorter while it was packed; pack again when nothing runs.")
    writer.write(archive.padding(size))
    return digest.hexdigest()


# Unpacking ----------------------------------------------------------------------------------------------


def _checked(pieces: Pieces) -> dict[str, list[Packed]]:
    """Return the files of a pack by folder, after every path, size and checksum has been checked."""
    found = _listed(pieces)
    manifest = found.pop(MANIFEST, None)
    if not found:
        raise pieces.wrong("it holds no results")
    packed = {path: Packed(member, _digest(pieces, member)) for path, member in found.items()}
    if manifest is not None:
        _check_manifest(pieces, manifest, packed)
    folders: dict[str, list[Packed]] = {}
    for path, held in packed.items():
        folders.setdefault(path.rpartition("/")[0], []).append(held)
    return folders


def _listed(pieces: Pieces) -> dict[str, Member]:
    """Return the files of a pack by path; stop at the first that no store has, or when they are too many."""
    found: dict[str, Member] = {}
    size = 0
    for member in archive.members(pieces):
        path = member.path
        if member.is_folder:
            if not re.fullmatch(_FOLDER, path):
                raise pieces.wrong(f"{shown(path)} is no folder of a store")
            continue
        if path != MANIFEST and not _folder_of(path):
            raise pieces.wrong(f"{shown(path)} is no file of a store")
        if path in found:
            raise pieces.wrong(f"{shown(path)} is in it twice")
        found[path] = member
        size += member.size
        if size > LIMIT or len(found) > MOST_FILES + 1:
            raise pieces.wrong(f"it holds more than {MOST_FILES:,} files or {_bytes(LIMIT)}")
    return found


def _digest(pieces: Pieces, member: Member) -> str:
    digest = hashlib.sha256()
    for chunk in pieces.chunks(member.start, member.size):
        digest.update(chunk)
    return digest.hexdigest()


def _check_manifest(pieces: Pieces, manifest: Member, packed: dict[str, Packed]) -> None:
    content = _json(pieces, manifest)
    if content.get("form") != FORM:
        raise pieces.wrong(
            f"its manifest has form {shown(str(content.get('form')))}, but this skiplab reads {FORM}"
        )
    sums = content.get("sha256")
    if not isinstance(sums, dict) or sums.keys() != packed.keys():
        raise pieces.wrong("its manifest lists other files than it holds")
    for path, held in packed.items():
        if sums[path] != held.sha256:
            raise pieces.wrong(f"{shown(path)} has another SHA-256 than its manifest says")


def _json(pieces: Pieces, member: Member) -> dict[str, Any]:
    """Read a JSON object out of a pack."""
    try:
        content = json.loads(pieces.read(member.start, member.size)) if member.size <= LARGEST_JSON else None
    except (ValueError, RecursionError):  # also what is no UTF-8, and numbers of too many digits
        content = None
    if not isinstance(content, dict):
        raise pieces.wrong(f"{shown(member.path)} cannot be read")
    return content


def _is_wanted(pieces: Pieces, held: list[Packed], ours: Path) -> bool:
    """Whether a packed folder is new here or a run that finished after ours.

    A trial with the same key is the same trial.
    """
    runs = [each.member for each in held if _is_run(PurePath(each.member.path))]
    packed = [_finished(_json(pieces, run)) for run in runs]
    if None in packed:
        raise pieces.wrong(f"{shown(runs[0].path)} does not say when its run finished")
    if not ours.exists() or not runs:
        return not ours.exists()
    try:
        kept = _finished(json.loads((ours / "run.json").read_bytes()))
    except FileNotFoundError:
        return False
    except (ValueError, RecursionError):
        kept = None
    # Ours may be damaged, and is then worth less than what was packed.
    return kept is None or str(packed[0]) > kept


def _finished(run: Any) -> str | None:
    provenance = run.get("provenance") if isinstance(run, dict) else None
    when = provenance.get("finished") if isinstance(provenance, dict) else None
    return when if isinstance(when, str) else None


def _space(root: Path, file: Path, folders: Iterable[list[Packed]]) -> str:
    """Say how much will be written, or refuse what the disk cannot take."""
    sizes = [held.member.size for folder in folders for held in folder]
    needed = sum(-(-size // DISK_BLOCK) * DISK_BLOCK for size in sizes)
    place = root.absolute()
    free = shutil.disk_usage(next(each for each in (place, *place.parents) if each.is_dir())).free
    if needed > free:
        raise Refused(
            f"{file} needs {_bytes(needed)} in {root}, but the disk has {_bytes(free)} free; free some space or "
            "name another --store."
        )
    return f"Unpacking {len(sizes):,} new file(s), {_bytes(sum(sizes))}, into {root} ({_bytes(free)} free)."


def _fill(pieces: Pieces, held: list[Packed], folder: Path) -> None:
    for each in held:
        digest = hashlib.sha256()
        with (folder / each.name).open("xb") as target:
            for chunk in pieces.chunks(each.member.start, each.member.size):
                digest.update(chunk)
                target.write(chunk)
        if digest.hexdigest() != each.sha256:  # somebody changed the pieces since they were checked
            raise pieces.damaged()


def _stopped(what: str, error: OSError) -> SkiplabError:
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    where = f": {cause.filename}" if cause.filename else ""
    return SkiplabError(
        f"{what} ({cause.strerror or cause}{where}); mend that or name another place, and give the command again."
    )


def _bytes(size: int) -> str:
    power, unit = next((step for step in ((30, "GiB"), (20, "MiB")) if size >> step[0]), (10, "KiB"))
    return f"{size / 2**power:.1f} {unit}"
