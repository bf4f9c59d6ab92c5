"""Writing aside and putting in place, so that a reader sees the old or the new, never half of one.

What is put in place has been handed to the disk first (fsync), so that a power cut leaves the old or the new too.
"""

from __future__ import annotations

import ctypes
import errno
import os
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from skiplab.files.leftovers import ASIDE, OLD, aside_file, aside_folder, held
from skiplab.files.trouble import Damaged, DamageFound, writing_to

# Tests that write thousands of files switch it off; nothing else does.
DURABLE = True


# Files ------------------------------------------------------------------------------------------------------


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a path to write to beside ``path``, and rename it there if nothing went wrong."""
    with writing_to(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside_file(path.parent) as aside:
            yield aside
            # mkstemp makes files that only their owner may read; a data folder is often shared.
            aside.chmod(0o644)
            # A folder that is being written aside is flushed as a whole.
            if not path.parent.name.startswith(ASIDE):
                flush(aside)
            os.replace(aside, path)
        if not path.parent.name.startswith(ASIDE):
            flush(path.parent)


def write_bytes(path: Path, *parts: bytes) -> None:
    """Write or replace a file that holds these bytes one after the other."""
    with replacing(path) as aside, aside.open("wb") as file:
        file.writelines(parts)


def move(source: Path, target: Path) -> None:
    """Give a file or folder another name on the same disk, in one step; a file there is replaced."""
    os.replace(source, target)


def flush(path: Path) -> None:
    """Wait until a file's bytes, or a folder's names, are on the disk."""
    if not DURABLE:
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (
            errno.EINVAL,
            errno.EBADF,
            errno.ENOTSUP,
        ):  # some disks cannot do it for a folder
            raise
    finally:
        os.close(handle)


# Folders ----------------------------------------------------------------------------------------------------


def write_folder(
    target: Path, write: Callable[[Path], None], *, replace: bool = True, ours: Sequence[str] | None = None
) -> None:
    """Write a folder aside and put it in place whole; the old one or the new one is there at every moment.

    Of two processes that write the same new folder at the same moment, the one that came first stays; without
    ``replace`` whatever is there stays. ``ours`` are the names of files that the old folder may lose. Where somebody
    put something else into it, the folder stays and its files are replaced one by one, the first in ``ours`` last:
    what is a user's is never moved, so that nothing that stops us can lose it.
    """
    with writing_to(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with aside_folder(target.parent) as aside:
            write(aside)
            aside.chmod(0o755)
            for path in sorted(aside.rglob("*")):
                flush(path)
            if not os.path.lexists(target):
                _put(aside, target)
            elif replace and ours is not None and _has_others(target, ours):
                _put_into(aside, target, ours)
            elif replace:
                with held(target):  # the old folder, so that nobody sweeps it while it lies aside
                    if not _exchanged(aside, target):
                        _put_instead(aside, target)
            flush(target.parent)
        # What is left aside was written in vain or is the old folder; it is removed.


def _put(aside: Path, target: Path) -> None:
    try:
        os.rename(aside, target)
    except OSError:
        if not target.exists():
            raise


def _put_instead(aside: Path, target: Path) -> None:
    """Replace a folder by two renames, where the system cannot exchange; a kill between them is mended by a sweep."""
    with aside_folder(target.parent, OLD) as old:
        try:
            with suppress(FileNotFoundError):  # another process may have taken it
                os.rename(target, old / target.name)
            _put(aside, target)
        finally:
            if not target.exists() and (old / target.name).exists():
                os.rename(old / target.name, target)
        if (old / target.name).exists() and not aside.exists():
            os.rename(old / target.name, aside)


def _exchanged(one: Path, other: Path) -> bool:
    """Let two paths change places in one step, where the system and the disk can (Linux, most disks)."""
    try:
        rename = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):  # another system, or an old C library
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of linux/fcntl.h and linux/fs.h
    return bool(rename(here, os.fsencode(one), here, os.fsencode(other), exchange) == 0)


def _has_others(folder: Path, ours: Sequence[str]) -> bool:
    """Whether somebody put something of their own into a folder; a link in its place is replaced, not followed."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return any(each.name not in ours or not _is_plain(each) for each in folder.iterdir())


def _put_into(aside: Path, target: Path, ours: Sequence[str]) -> None:
    """Replace those files of a folder that are ours, the most important one last, and touch nothing else."""
    new = {each.name for each in aside.iterdir()}
    for name in ours:
        if name not in new and _is_plain(target / name):
            (target / name).unlink()
    for name in sorted(new, key=lambda name: -ours.index(name) if name in ours else -len(ours)):
        os.replace(aside / name, target / name)
    flush(target)


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def set_aside(path: Path, problem: Damaged, instead: str) -> Path:
    """Hide a damaged file or folder beside its place, where nothing reads it, and say what happens instead."""
    place = path.with_name(f".damaged-{path.name}-{uuid.uuid4().hex[:8]}")
    with writing_to(path), suppress(FileNotFoundError):  # another process may have set it aside
        os.rename(path, place)
    sentence = f"{problem}; {path.name} was set aside as {place.name}, and {instead}."
    warnings.warn(sentence, DamageFound, stacklevel=3)
    return place
