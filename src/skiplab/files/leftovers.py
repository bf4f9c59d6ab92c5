"""What is being written, and what killed writers left: names of our own, a lock while somebody is at work.

Everything unfinished is called ``.skiplab-aside-…`` and lies beside what it is to become. Its writer holds a lock on
it, which the system drops when the writer ends, however it ends. Whoever writes into a folder first removes what
nobody holds there. Where a disk knows no locks, only what is a day old is removed.

    .skiplab-aside-…    a file or folder that is being written, or an old one that is being removed
    .skiplab-old-…      what is being replaced; put back if its place is empty
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

ASIDE, OLD = ".skiplab-aside-", ".skiplab-old-"
STALE = (
    86_400.0  # seconds after which an unfinished file is a killed writer's; chosen by us, nothing takes a day
)
NEWBORN = 1.0  # seconds in which a writer may not hold what it has just made

_swept: set[tuple[int, str]] = set()


@contextmanager
def aside_folder(parent: Path, prefix: str = ASIDE) -> Iterator[Path]:
    """A new folder to work in, removed at the end; if this process is killed, by the next one that comes here."""
    sweep_once(parent)
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    try:
        with held(folder):
            yield folder
    finally:
        remove(folder)


@contextmanager
def aside_file(parent: Path) -> Iterator[Path]:
    """A new empty file, removed at the end unless it has been renamed; after a kill by the next process."""
    sweep_once(parent)
    handle, name = tempfile.mkstemp(prefix=ASIDE, dir=parent)
    os.close(handle)
    try:
        with held(Path(name)):
            yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lock on a file or folder, as long as this process lives at most."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # a FIFO in the way would keep us waiting
    try:
        _lock(handle)
        yield
    finally:
        os.close(handle)


def _lock(handle: int) -> bool | None:
    """Whether the lock is ours now; None where there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # some network disks
        return None
    return True


def sweep_once(folder: Path) -> None:
    """Sweep a folder when this process first writes there: folders may be large, and kills are rare."""
    place = (os.getpid(), os.path.realpath(folder))
    if place not in _swept and not folder.name.startswith(ASIDE):
        _swept.add(place)
        sweep(folder)


def sweep(folder: Path) -> int:
    """Remove what killed writers left in a folder and put back what they moved away; return how many there were."""
    found = [path for pattern in (f"{ASIDE}*", f"{OLD}*") for path in folder.glob(pattern)]
    count = 0
    for left in found:
        with suppress(OSError):  # another process may be sweeping too
            if is_abandoned(left):
                if left.name.startswith(OLD):
                    _put_back(left)
                remove(left)
                count += 1
    return count


def is_abandoned(path: Path) -> bool:
    """Whether the writer of something unfinished is dead: nobody holds it or, where there are no locks, it is old."""
    status = path.lstat()
    age = time.time() - status.st_mtime
    # We make files and folders; a link, a device or a pipe is somebody else's.
    if age < NEWBORN or not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return False
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        ours = _lock(handle)
    finally:
        os.close(handle)
    return age > STALE if ours is None else ours


def _put_back(old: Path) -> None:
    """Give what a killed writer had moved away its place again, unless something new is there."""
    for each in sorted(old.iterdir()):
        if not os.path.lexists(old.parent / each.name):
            os.rename(each, old.parent / each.name)


def remove(path: Path) -> None:
    """Remove a file or folder of ours with all it holds; one that is gone already is no fault."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_empty(folder: Path) -> bool:
    """Remove a folder in which there is nothing, and say whether it is gone."""
    try:
        folder.rmdir()
    except OSError:  # somebody has something there
        return not folder.exists()
    return True
