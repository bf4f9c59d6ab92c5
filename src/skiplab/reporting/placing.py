"""Putting a site into its folder without touching anything there that is not ours.

A hidden file in the folder lists what the report wrote. The next report replaces or removes these files alone,
follows no link, and refuses, before it changes anything, to write where something else stands.
"""

from __future__ import annotations

import errno
import filecmp
import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path, PurePath

from skiplab.checks import Refused, SkiplabError
from skiplab.files import aside_folder, kind_of, move, remove, remove_empty, write_bytes

MARKER = ".skiplab-report"
LISTED = "`skiplab report` wrote these files and replaces them; others in this folder stay."
# Reports of before did not list their files: there, what has the name of a report's file is one.
UNLISTED = "This folder is replaced as a whole by `skiplab report`."
LARGEST_LIST = 2**22  # bytes
# The list is a file that anyone may edit; it can name nothing but what a report may hold.
_PART = r"[A-Za-z0-9][\w.+-]*"
OURS = re.compile(rf"(?:assets/|studies/{_PART}/{_PART}/)?{_PART}", re.ASCII)
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def place(out: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` fill a folder aside, then put its files into ``out``; a failure leaves all as it was."""
    # The way to the folder may lead over links, as it does for any command; the folder itself may not be one.
    folder = out.parent.resolve() / out.name if out.name not in ("", "..") else out.resolve()
    earlier(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with aside_folder(folder.parent) as aside:
            write(aside)
            new = _files(aside)
            _write_list(aside, new)
            aside.chmod(0o755)
            if not _renamed(aside, folder):
                _merge(aside, new, folder)
    except OSError as error:
        if error.errno not in FULL:
            raise
        raise SkiplabError(
            f"the report could not be written into {out} ({error.strerror}); free some space or choose another --out."
        ) from error


def earlier(out: Path) -> set[str]:
    """Return the files of an earlier report in a folder; refuse what is neither one nor empty nor missing."""
    kind = kind_of(out)
    if not kind:
        return set()
    if kind != "a folder":
        raise Refused(f"{out} is {kind}; choose a new or an empty folder.")
    if not any(out.iterdir()):
        return set()
    marker = out / MARKER
    if os.path.lexists(marker) and stat.S_ISREG(marker.lstat().st_mode):
        with marker.open("rb") as file:
            title, *lines = file.read(LARGEST_LIST).decode("utf-8", "replace").splitlines() or [""]
        if title == LISTED:
            return {line for line in lines if OURS.fullmatch(line)}
        if title == UNLISTED:
            return _with_our_names(out)
    raise Refused(f"{out} holds something other than a report; choose a new or an empty folder.")


def _with_our_names(out: Path) -> set[str]:
    names = r"index\.html|run\.json|table\.(?:csv|parquet)|figure\.(?:svg|png|webp)"
    ours = re.compile(
        rf"index\.html|scoreboard\.csv|assets/(?:site\.css|site\.js|icon\.svg)|studies/{_PART}/{_PART}/(?:{names})",
        re.ASCII,
    )
    return {path for path in _files(out) if ours.fullmatch(path)}


def _files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if not path.is_dir()}


def _write_list(folder: Path, files: Iterable[str]) -> None:
    # Renamed into place, so that no link of the user's is written through.
    write_bytes(folder / MARKER, ("\n".join([LISTED, *sorted(files)]) + "\n").encode())


def _renamed(aside: Path, folder: Path) -> bool:
    """Let a new folder appear in one step, if there is none yet."""
    if os.path.lexists(folder):
        return False
    try:
        move(aside, folder)
    except OSError:
        if not folder.is_dir():
            raise
        return False  # another report was faster
    return True


def _merge(aside: Path, new: set[str], out: Path) -> None:
    old = earlier(out)
    for path in sorted(new | old):
        _check_way(out, path)
    for path in sorted(new):
        _check_free(aside / path, out / path, path in old)
    # Before the first file changes, so that a report killed here leaves nothing that the next one does not know.
    _write_list(out, new | old)
    for path in new:
        (out / path).parent.mkdir(parents=True, exist_ok=True)
    # The first page comes last: all that it links to is there.
    for path in sorted(new, key=lambda path: (-path.count("/"), path)):
        move(aside / path, out / path)
    for path in sorted(old - new):
        if os.path.lexists(out / path) and stat.S_ISREG((out / path).lstat().st_mode):
            remove(out / path)
            _remove_empty(out, (out / path).parent)
    _write_list(out, new)


def _check_way(out: Path, path: str) -> None:
    """Refuse a file below what is not a folder that can be written, above all below a link."""
    for way in (out / parent for parent in PurePath(path).parents):
        if not os.path.lexists(way):
            continue
        if not stat.S_ISDIR(way.lstat().st_mode):
            raise Refused(f"{way} is not a folder of the report; move it away or choose another --out.")
        if not os.access(way, os.W_OK):
            raise Refused(f"{way} cannot be written; change its permissions or choose another --out.")


def _check_free(new: Path, target: Path, is_ours: bool) -> None:
    """Refuse to write over what the report did not write."""
    if not os.path.lexists(target):
        return
    # The same bytes are no loss, and another report may be writing them at this moment.
    if stat.S_ISREG(target.lstat().st_mode) and (is_ours or filecmp.cmp(new, target, shallow=False)):
        return
    raise Refused(f"{target} was not written by the report; move it away or choose another --out.")


def _remove_empty(out: Path, folder: Path) -> None:
    while folder != out and remove_empty(folder):
        folder = folder.parent
