"""The few forms of tar that a pack has, written and read header by header.

Python's ``tarfile`` understands far more than we write (links, devices, sparse files, compression, negative
sizes), and each of these has let an archive write elsewhere or never end (CVE-2025-4517, CVE-2025-8194). What
is not understood here can do nothing.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass

from skiplab.reproduction.pieces import Pieces

BLOCK = tarfile.BLOCKSIZE
LARGEST = 8**11 - 1  # bytes of one file; eleven octal digits hold no more
LONGEST = 100  # characters of a path; a header has no more room
END = bytes(2 * BLOCK)
KINDS = {
    b"1": "a hard link", b"2": "a symbolic link", b"3": "a character device", b"4": "a block device",
    b"6": "a FIFO", b"7": "a contiguous file", b"L": "a long name", b"K": "a long link", b"S": "a sparse file",
    b"g": "a global header",
}  # fmt: skip
# Earlier packs note with every file when it was changed and who owns it; none of it matters.
NOTES = {b"mtime", b"atime", b"ctime", b"uid", b"gid", b"uname", b"gname"}
LONGEST_NOTE = 4096


@dataclass(frozen=True)
class Member:
    """A file in the archive, or a folder, which packs of the older form name too."""

    path: str
    start: int
    size: int
    is_folder: bool = False


def header(path: str, size: int) -> bytes:
    """Return the block that stands before a file's bytes; the same file gives the same block anywhere."""
    entry = tarfile.TarInfo(path)
    entry.size = size
    return entry.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


def padding(size: int) -> bytes:
    """Return what fills a file's last block."""
    return bytes(-size % BLOCK)


def members(pieces: Pieces) -> Iterator[Member]:
    """Yield what an archive holds, in its order; anything but files and folders is refused."""
    position = 0
    while (block := pieces.read(position, BLOCK)) != bytes(BLOCK):
        position += BLOCK
        name, kind, size = _parse(pieces, block)
        if size > pieces.length - position:
            raise pieces.wrong(f"{shown(name)} is said to have {size:,} bytes, more than the pack")
        if kind == b"x":
            _check_notes(pieces, position, size)
        elif kind in (b"0", b"\0"):
            yield Member(name, position, size)
        elif kind == b"5" and not size:
            yield Member(name.removesuffix("/"), position, 0, is_folder=True)
        else:
            raise pieces.wrong(f"{shown(name)} is {KINDS.get(kind, 'of an unknown kind')}")
        position += size + len(padding(size))
    # Two empty blocks end an archive, and tarfile fills up to twenty; more would be something hidden.
    rest = pieces.length - position
    if not len(END) <= rest <= len(END) + tarfile.RECORDSIZE or any(pieces.read(position, rest)):
        raise pieces.wrong("its archive does not end as it should")


def _parse(pieces: Pieces, block: bytes) -> tuple[str, bytes, int]:
    name, _, rest = block[:100].partition(b"\0")
    # The checksum counts its own eight bytes as spaces.
    total = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if block[257:265] != b"ustar\x0000" or _octal(block[148:156]) != total:
        raise pieces.wrong("its archive has a damaged header or another format")
    text = name.decode("latin-1")
    kind, size = block[156:157], _octal(block[124:136])
    if kind not in KINDS and (any(rest) or any(block[157:257]) or any(block[345:500])):
        raise pieces.wrong(f"{shown(text)} has a header with more than a name")
    if size is None:
        raise pieces.wrong(f"{shown(text)} has a size that is no number")
    return text, kind, size


def _octal(field: bytes) -> int | None:
    found = re.fullmatch(rb" *([0-7]+)[ \0]*", field)
    return int(found[1], 8) if found else None


def _check_notes(pieces: Pieces, start: int, size: int) -> None:
    """Refuse notes that would change a file's name, size or kind."""
    notes = pieces.read(start, size) if size <= LONGEST_NOTE else b""
    while found := re.match(rb"(\d{1,4}) ([a-z]+)=", notes):
        if found[2] not in NOTES or not found.end() < int(found[1]) <= len(notes):
            break
        notes = notes[int(found[1]) :]
    if notes or not 0 < size <= LONGEST_NOTE:
        raise pieces.wrong("its archive has notes that change what follows")


def shown(name: str) -> str:
    """Return a name as a terminal may show it: quoted, in ASCII, not too long."""
    return ascii(name if len(name) <= LONGEST else name[:LONGEST] + "…")
