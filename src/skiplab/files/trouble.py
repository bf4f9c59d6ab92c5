"""What goes wrong on disks, in words: what they refuse (full, read-only, a limit on sizes), and what is damaged."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skiplab.files.leftovers import ASIDE, OLD, aside_folder

AGAIN = "then give the same command again"
FULL = f"free some space or name another place, {AGAIN}"
LOCKED = f"change its permissions or name another place, {AGAIN}"
REMEDIES = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EFBIG: f"raise the limit on the size of files (ulimit -f) or name another place, {AGAIN}",
    errno.EACCES: LOCKED,
    errno.EPERM: LOCKED,
    errno.EROFS: LOCKED,
    errno.EMFILE: f"raise the limit on open files (ulimit -n), {AGAIN}",
    errno.ENFILE: f"close other programs, {AGAIN}",
    errno.ENOMEM: f"close other programs, {AGAIN}",
}

KINDS = {
    stat.S_ISREG: "a file",
    stat.S_ISDIR: "a folder",
    stat.S_ISLNK: "a link",
    stat.S_ISFIFO: "a FIFO",
    stat.S_ISSOCK: "a socket",
}


class Damaged(ValueError):
    """A stored file is not what was written; the message is a clause that names it."""


class DamageFound(UserWarning):
    """Says in one sentence what is damaged and what happens instead; the command line prints it as it is."""


class DiskTrouble(OSError):
    """A file or folder could not be written or read; the message is one sentence that a user can act on."""

    @classmethod
    def of(cls, error: OSError, path: Path, what: str) -> DiskTrouble:
        """What an error means for ``path``, which ``what`` could not be done with."""
        place = Path(error.filename or path)
        if place.name.startswith((ASIDE, OLD)):  # a name of our own in a folder that took no file
            place = place.parent
        reason = error.strerror or type(error).__name__
        remedy = REMEDIES.get(error.errno or 0, f"name another place, {AGAIN}")
        found = cls(f"{place} cannot be {what} ({reason}); {remedy}.")
        found.errno = error.errno
        return found


def kind_of(path: Path) -> str:
    """What is at a place, in words: 'a link', 'a folder', 'a FIFO'; nothing where there is nothing."""
    if not os.path.lexists(path):
        return ""
    mode = path.lstat().st_mode
    return next((words for is_one, words in KINDS.items() if is_one(mode)), "a device")


@contextmanager
def writing_to(path: Path) -> Iterator[None]:
    """Say in a sentence why something below could not be written there."""
    try:
        yield
    except DiskTrouble:
        raise
    except OSError as error:
        raise DiskTrouble.of(error, path, "written") from error


def check_writable(folder: Path) -> None:
    """Make a folder if need be and refuse one that takes no files, before hours of work are lost to it."""
    with writing_to(folder):
        folder.mkdir(parents=True, exist_ok=True)
        with aside_folder(folder) as aside:
            (aside / "probe").write_bytes(b"x")
