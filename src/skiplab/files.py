"""Files and folders on disk: the one place that replaces, checks, sets aside and removes them.

Everything is written aside and renamed into place, so that a reader sees the old or the new, never half of one. A
power cut or a failing disk may still change what was written: what counts carries a SHA-256, in one of two forms.

    a sealed file    its content, then the 32 bytes of its hash
    a sealed JSON    {"sha256":"…", and the hash is that of all that follows this line
"""

from __future__ import annotations

import ctypes
import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

STALE = 86_400.0  # seconds after which a half-written file is a killed writer's; chosen by us, nothing takes a day
SEAL = hashlib.sha256().digest_size
SEAL_LINE = re.compile(rb'\{"sha256":"([0-9a-f]{64})",\n')


class Damaged(ValueError):
    """A stored file is not what was written; the message is a clause that names it."""


class DamageFound(UserWarning):
    """Says in one sentence what is damaged and what happens instead; the command line prints it as it is."""


# Files ------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to beside ``path``, and rename it there if nothing went wrong."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent, f".{glob.escape(path.name)}-????????")
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    os.close(handle)
    aside = Path(name)
    try:
        yield aside
        # mkstemp makes files that only their owner may read; a data folder is often shared.
        aside.chmod(0o644)
        os.replace(aside, path)
    finally:
        aside.unlink(missing_ok=True)


def write_bytes(path: Path, *parts: bytes) -> None:
    """Write or replace a file that holds these bytes one after the other."""
    with replacing(path) as aside, aside.open("wb") as file:
        file.writelines(parts)


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
        content = path.read_bytes()
    except FileNotFoundError:
        raise Damaged(f"{path} is missing") from None
    except PermissionError:
        raise  # the file may be whole, and the user can mend this
    except OSError as error:
        raise Damaged(f"{path} cannot be read ({error.strerror})") from error
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


def move(source: Path, target: Path) -> None:
    """Give a file or folder another name on the same disk, in one step; a file there is replaced."""
    os.replace(source, target)


# Folders ----------------------------------------------------------------------------------------------------


def write_folder(target: Path, write: Callable[[Path], None]) -> None:
    """Write a folder aside and put it in place whole; the old one or the new one is there at every moment.

    Of two processes that write the same new folder at the same moment, the one that came first stays. What killed
    writers left beside it is removed after a day.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _sweep(target.parent, ".aside-*", ".old-*")
    aside = Path(tempfile.mkdtemp(prefix=".aside-", dir=target.parent))
    try:
        write(aside)
        aside.chmod(0o755)
        if not target.exists():
            _put(aside, target)
        elif not _exchanged(aside, target):
            _put_instead(aside, target)
    finally:
        remove(aside)  # what was written in vain, or the old folder


def _put(aside: Path, target: Path) -> None:
    try:
        os.rename(aside, target)
    except OSError:
        if not target.exists():
            raise


def _put_instead(aside: Path, target: Path) -> None:
    """Replace a folder by two renames, where the system cannot exchange; only a kill between them is felt."""
    old = Path(tempfile.mkdtemp(prefix=".old-", dir=target.parent))
    try:
        with suppress(FileNotFoundError):  # another process may have taken it
            os.rename(target, old / "was")
        _put(aside, target)
    finally:
        if not target.exists() and (old / "was").exists():
            os.rename(old / "was", target)
        remove(old)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two paths change places in one step, where the system and the disk can (Linux, most disks)."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):  # another system, or an old C library
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of linux/fcntl.h and linux/fs.h
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def remove(path: Path) -> None:
    """Remove a file or folder of ours with all it holds; one that is gone already is no fault."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def set_aside(path: Path, problem: Damaged, instead: str) -> None:
    """Hide a damaged file or folder beside its place, where nothing reads it, and say what happens instead."""
    place = path.with_name(f".damaged-{path.name}-{uuid.uuid4().hex[:8]}")
    with suppress(FileNotFoundError):  # another process may have set it aside
        os.rename(path, place)
    sentence = f"{problem}; {path.name} was set aside as {place.name}, and {instead}."
    warnings.warn(sentence, DamageFound, stacklevel=3)


def _sweep(folder: Path, *patterns: str) -> None:
    """Remove what killed writers left in a folder, once it is a day old."""
    for left in [path for pattern in patterns for path in folder.glob(pattern)]:
        with suppress(OSError):  # another process may be sweeping too
            if left.lstat().st_mtime < time.time() - STALE:
                remove(left)
