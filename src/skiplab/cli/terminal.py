"""What a terminal can show: signs in plain letters where it knows no others, and no escape codes from files."""

from __future__ import annotations

import codecs
import contextlib
import io
import sys
import unicodedata

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
