"""Checksums: what was stored is what is read, or is said to be damaged.

A power cut or a failing disk may change what was written: what counts carries a SHA-256, in one of two forms.

    a sealed file    its content, then the 32 bytes of its hash
    a sealed JSON    {"sha256":"…", and the hash is that of all that follows this line
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
from pathlib import Path
from typing import Any

from skiplab.files.trouble import Damaged, DiskTrouble, kind_of
from skiplab.files.writing import write_bytes

SEAL = hashlib.sha256().digest_size
SEAL_LINE = re.compile(rb'\{"sha256":"([0-9a-f]{64})",\n')
# What a failing disk says, or a file that is none; all else says nothing about the file.
BROKEN: tuple[int, ...] = (errno.EIO, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENXIO)
BROKEN += (errno.EUCLEAN,) if hasattr(errno, "EUCLEAN") else ()  # only Linux has it


def write_sealed(path: Path, content: bytes) -> None:
    """Write or replace a file of bytes that carries its hash."""
    write_bytes(path, content, hashlib.sha256(content).digest())


def read_sealed(path: Path) -> bytes:
    """Read what ``write_sealed`` wrote; anything else is damage."""
    whole = read_bytes(path)
    content, seal = whole[:-SEAL], whole[-SEAL:]
    if hashlib.sha256(content).digest() != seal:
        raise Damaged(f"{path} fails its checksum")
    return content


def read_bytes(path: Path, sha256: str | None = None) -> bytes:
    """Read a file once and compare it with the hash given; what cannot be read is damage."""
    try:
        # What is no file may have no end, and no beginning until somebody writes.
        if path.is_fifo() or path.is_char_device():
            raise Damaged(f"{path} is {kind_of(path)}, not a file")
        content = path.read_bytes()
    except FileNotFoundError:
        raise Damaged(f"{path} is missing") from None
    except OSError as error:
        if error.errno in BROKEN:
            raise Damaged(f"{path} cannot be read ({error.strerror})") from error
        raise DiskTrouble.of(
            error, path, "read"
        ) from error  # the file may be whole, and the user can mend this
    if not content:
        raise Damaged(f"{path} is empty")
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise Damaged(f"{path} fails its checksum")
    return content


def write_json(path: Path, content: dict[str, Any], **options: Any) -> None:
    """Write or replace a sealed JSON file."""
    write_bytes(path, sealed_json(content, **options))


def sealed_json(content: dict[str, Any], **options: Any) -> bytes:
    """Make a JSON file that carries its hash."""
    body = json.dumps(content, **options)[1:].lstrip().encode()
    return b'{"sha256":"%s",\n' % hashlib.sha256(body).hexdigest().encode() + body


def read_json(path: Path, *, sealed: bool = False) -> dict[str, Any]:
    """Read a JSON file and check its hash.

    Files of earlier versions have none and are taken as they are, unless ``sealed`` asks for it.
    """
    return unsealed_json(read_bytes(path), path, sealed=sealed)


def unsealed_json(whole: bytes, where: Path | str, *, sealed: bool = False) -> dict[str, Any]:
    """Read what ``sealed_json`` made; anything else is damage, said of the place given."""
    line = SEAL_LINE.match(whole)
    if line is None and (sealed or whole.startswith(b'{"sha256":')):
        raise Damaged(f"{where} has lost its checksum")
    body = b"{" + whole[line.end() :] if line else whole
    if line and hashlib.sha256(body[1:]).hexdigest().encode() != line[1]:
        raise Damaged(f"{where} fails its checksum")
    try:
        content = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{where} is cut or changed ({type(error).__name__})") from error
    if not isinstance(content, dict):
        raise Damaged(f"{where} holds something else than named values")
    return content
