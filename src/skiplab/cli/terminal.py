"""What a terminal can show: signs in plain letters where it knows no others, and no escape codes from files."""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import sys
import unicodedata
from collections.abc import Iterator

# A replaced ✓ or ✗ must not look like the ? of an open claim.
PLAIN = {
    "✓": "+", "✗": "x", "–": "-", "—": "-", "−": "-", "…": "...", "·": ".", "•": "*", "×": "x", "≤": "<=", "≥": ">=",
    "→": "->", "⁻": "-", "“": '"', "”": '"', "‘": "'", "’": "'", "▀": "#", "─": "-", "━": "-", "○": "o", "√": "sqrt ",
}  # fmt: skip


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_plain, error.object[error.start : error.end])), error.end


def _plain(sign: str) -> str:
    if sign in PLAIN:
        return PLAIN[sign]
    name = unicodedata.name(sign, "")
    if name.startswith("GREEK"):
        return name.split()[-1].lower()  # σ is sigma
    # é is e with an accent, ² is a raised 2.
    return unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode() or "?"


def never_fail() -> None:
    """Let standard output and error write in plain letters what they cannot write as it is."""
    codecs.register_error("skiplab-plain", _plainly)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(OSError, ValueError):
                stream.reconfigure(errors="skiplab-plain")


@contextlib.contextmanager
def prints_to_stderr(*, really: bool = True) -> Iterator[None]:
    """Let what others print go to standard error, so that JSON stands alone on standard output.

    Libraries in C and other processes write to the descriptor, not to Python's stream, so both are turned.
    """
    if not really:
        yield
        return
    with contextlib.redirect_stdout(sys.stderr), contextlib.ExitStack() as later:
        with contextlib.suppress(OSError, ValueError):  # one of the two is closed, or is no file
            kept = os.dup(1)
            later.callback(os.close, kept)
            later.callback(os.dup2, kept, 1)
            os.dup2(2, 1)
        yield
