"""One long file cut into pieces that fit through a narrow door.

Pieces are written aside and take their names when all of them are whole, in a turn of their own (``files.turn``)
for which whoever reads them waits. They are read where they lie, never joined in memory. The last bytes of the last
piece are the SHA-256 of everything before them.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from skiplab.checks import Refused, SkiplabError
from skiplab.files import (
    Damaged,
    aside_folder,
    kind_of,
    move,
    remove,
    remove_empty,
    set_aside,
    turn,
    write_bytes,
    writing_to,
)

DIGEST = hashlib.sha256().digest_size
CHUNK = 2**20
JOURNAL = "journal.json"  # which pieces there were when old and new ones began to change places


class PackDamaged(SkiplabError):
    """The pieces of a packed store do not make up what was packed."""


def piece(file: Path, number: int) -> Path:
    """Return the path of one piece: FILE.000, FILE.001, …"""
    if file.name in ("", ".."):
        raise Refused(
            f"{str(file)!r} names no file; write a name such as results, whose pieces lie beside it."
        )
    return file.with_name(f"{file.name}.{number:03d}")


def found(file: Path) -> list[Path]:
    """List what is there under a pack's names, up to the first number that is missing."""
    # Counting instead of globbing: FILE.2024, with no piece before it, is something of the user's own.
    return list(itertools.takewhile(os.path.lexists, (piece(file, number) for number in itertools.count())))


class Writer:
    """Cuts what is written to it into numbered files in a folder."""

    def __init__(self, folder: Path, size: int) -> None:
        self.folder, self.size = folder, size
        self.paths: list[Path] = []
        self.digest = hashlib.sha256()
        self._open: BinaryIO | None = None
        self._left = 0

    def write(self, content: bytes) -> None:
        """Add some bytes."""
        self.digest.update(content)
        self._cut(content)

    def finish(self) -> None:
        """Put the digest behind the last byte and close the last piece."""
        self._cut(self.digest.digest())
        self.close()

    def close(self) -> None:
        """Close the piece in hand, once it is on the disk."""
        if self._open is not None:
            with self._open as file:
                self._open = None
                file.flush()
                os.fsync(file.fileno())

    def _cut(self, content: bytes) -> None:
        rest = memoryview(content)
        while rest:
            if not self._left:
                self.close()
                self.paths.append(self.folder / str(len(self.paths)))
                self._open = self.paths[-1].open("xb")
                self._left = self.size
            part, rest = rest[: self._left], rest[self._left :]
            assert self._open is not None
            self._open.write(part)
            self._left -= len(part)


@contextmanager
def writing(file: Path, size: int) -> Iterator[Writer]:
    """Give a writer whose pieces replace those of an earlier pack when all went well, and not before."""
    piece(file, 0)
    with writing_to(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        put_back(file)
        _earlier(file)  # before the work is done, and again after it
        with aside_folder(file.parent) as aside:
            writer = Writer(aside, size)
            try:
                yield writer
                writer.finish()
                with turn(file.parent, alone=True):
                    _exchange(writer.paths, file)
            finally:
                if writer._open is not None:
                    writer._open.close()


def _exchange(new: list[Path], file: Path) -> None:
    """Move the earlier pieces away and the new ones in; should that fail, everything goes back."""
    named = [piece(file, number) for number in range(len(new))]
    old = _earlier(file)
    for path in named:
        if path not in old and os.path.lexists(path):
            raise Refused(f"{path} is {kind_of(path)} in the way; move it or name another FILE.")
    kept = _old_pieces(file)
    kept.mkdir()
    journal = {"old": [_identity(path) for path in old], "new": [_identity(path) for path in new]}
    write_bytes(kept / JOURNAL, json.dumps(journal).encode())
    moves = [*((path, kept / path.name) for path in old), *zip(new, named, strict=True)]
    try:
        for source, target in moves:
            move(source, target)
    except BaseException:
        for source, target in reversed(moves):
            if os.path.lexists(target) and not os.path.lexists(source):
                move(target, source)
        remove(kept / JOURNAL)
        remove_empty(kept)
        raise
    remove(kept)


def _earlier(file: Path) -> list[Path]:
    """The pieces of an earlier pack of that name; whatever else is in their place is refused."""
    there = found(file)
    for path in there:
        if kind_of(path) != "a file":
            raise Refused(f"{path} is {kind_of(path)} in the way; move it or name another FILE.")
    if there:
        try:
            Pieces(file).verify()
        except PackDamaged as problem:
            words = "was not written by `store pack`, or is damaged"
            raise Refused(f"{there[0]} {words}; move it away or name another FILE.") from problem
    return there


def _old_pieces(file: Path) -> Path:
    """Where the pieces of an earlier pack lie while new ones take their names."""
    return file.with_name(f".skiplab-replaced-{file.name}")


def _identity(path: Path) -> list[int]:
    """What a file keeps when it is renamed, and does not when it is written or copied."""
    found = path.lstat()
    return [found.st_ino, found.st_size, found.st_mtime_ns]


def put_back(file: Path) -> None:
    """Mend what a kill between two renames left: the earlier pack, or the new one, is there whole.

    Whoever copied other pieces to the same names since then wants those: they stay, and what is left of the earlier
    pack is set aside.
    """
    piece(file, 0)
    kept = _old_pieces(file)
    # Somebody may be exchanging the pieces at this moment: there is something to mend only if it is there after that.
    if _is_folder(kept):
        with turn(file.parent, alone=True):
            if _is_folder(kept):
                _mend(file, kept)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _mend(file: Path, kept: Path) -> None:
    journal = _journal(kept)
    named = {piece(file, number) for number in range(len(journal["new"]))}
    old = sorted(path for path in kept.iterdir() if path.name.startswith(f"{file.name}."))
    there = sorted({*found(file), *filter(os.path.lexists, (*named, *(file.with_name(x.name) for x in old)))})
    identities = {path: _identity(path) for path in there}
    ours = [*journal["old"], *journal["new"]]
    strange = [path for path in there if identities[path] not in ours]
    new = [path for path in there if identities[path] in journal["new"]]
    if strange and old:
        problem = Damaged(f"{strange[0]} was put there after a `store pack` had been cut short")
        set_aside(kept, problem, "what was put there counts, the earlier pieces being in that folder")
    elif strange or (new and len(new) == len(journal["new"])):
        remove(kept)  # all that was left to do
    else:
        with aside_folder(file.parent) as aside:
            for path in new:
                move(path, aside / path.name)
            for path in old:
                move(path, file.with_name(path.name))
        remove(kept)


def _journal(kept: Path) -> dict[str, list[list[int]]]:
    """The identities of all pieces before they were moved; none where the kill came before anything was moved."""
    try:
        content = json.loads((kept / JOURNAL).read_bytes())
        return {name: [list(map(int, each)) for each in content[name]] for name in ("old", "new")}
    except (OSError, ValueError, TypeError, KeyError):
        return {"old": [], "new": []}


class Pieces:
    """The bytes before the digest, as if the pieces were one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.paths = found(file)
        if not self.paths and os.path.lexists(piece(file, 1)):
            raise PackDamaged(
                f"{piece(file, 0)}, the first of the pieces of {file}, is not here; copy it again."
            )
        if not self.paths:
            raise Refused(f"{piece(file, 0)} does not exist; name the FILE that was given to `store pack`.")
        for path in self.paths:
            if not path.is_file():
                raise PackDamaged(f"{path} is not a plain file; copy the pieces of {file} again.")
        sizes = [path.stat().st_size for path in self.paths]
        self.begins = [0, *itertools.accumulate(sizes)]
        self.length = self.begins[-1] - DIGEST

    def verify(self) -> None:
        """Refuse pieces whose digest is not that of their bytes."""
        if self.length < 0:
            raise self.damaged()
        digest = hashlib.sha256()
        for chunk in self.chunks(0, self.length):
            digest.update(chunk)
        if b"".join(self.chunks(self.length, DIGEST)) != digest.digest():
            raise self.damaged()

    def chunks(self, start: int, size: int) -> Iterator[bytes]:
        """Yield the bytes from start on, at most a mebibyte at a time; all of them or an error."""
        for number in range(bisect_right(self.begins, start) - 1, len(self.paths)):
            if not size:
                return
            with self.paths[number].open("rb") as file:
                file.seek(start - self.begins[number])
                while size and (part := file.read(min(CHUNK, size, self.begins[number + 1] - start))):
                    yield part
                    start, size = start + len(part), size - len(part)
        if size:  # the pieces are shorter than they were a moment ago
            raise self.damaged()

    def read(self, start: int, size: int) -> bytes:
        """Return some bytes, which must be there and not belong to the digest."""
        if start + size > self.length:
            raise self.wrong("its archive ends in the middle")
        return b"".join(self.chunks(start, size))

    def damaged(self) -> PackDamaged:
        """Say that the bytes are not those that were packed."""
        return PackDamaged(
            f"the {len(self.paths)} piece(s) of {self.file} are damaged or not all here; copy them again."
        )

    def wrong(self, what: str) -> PackDamaged:
        """Say that whole pieces hold what `store pack` does not write."""
        return PackDamaged(
            f"{self.file} is not a pack as skiplab writes it: {what}; nothing was unpacked, so have it packed again."
        )
