"""Turns: who moves several files of a folder is alone there meanwhile, who reads them is not disturbed.

The system drops a turn when its process ends, however it ends, and nothing is left in the folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Wait for a turn and keep it: alone, or together with all others who do not want to be alone.

    Not to be taken twice by one thread. Where a disk knows no locks, nobody waits.
    """
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:  # whoever reads or writes there next says why
        handle = None
    try:
        if handle is not None and fcntl is not None:
            with suppress(OSError):  # some network disks
                fcntl.flock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield
    finally:
        if handle is not None:
            os.close(handle)
