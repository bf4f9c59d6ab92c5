"""How far long work is, in words: what is done of how much, and how long the rest takes at that rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")
Tell = Callable[[str], None]


def silent(text: str) -> None:
    """Tell nobody."""


def duration(seconds: float) -> str:
    """Write seconds as a person would: '40 s', '6 min', '1.5 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class Counted:
    """Tells how many pieces of work are done, as "12 of 80 products, about 3 min more".

    With ``at_most`` the work may end earlier: "12 of at most 320 steps, at most 9 min more".
    """

    def __init__(self, tell: Tell | None, total: int, what: str, *, at_most: bool = False) -> None:
        self._tell, self._total, self._what = tell or silent, total, what
        self._limit, self._rest = ("at most ", "at most") if at_most else ("", "about")
        self._done, self._start = 0, time.monotonic()

    def after(
        self, work: Callable[[Given], Made], pieces: Callable[[Given], int] = lambda given: 1
    ) -> Callable[[Given], Made]:
        """The same function, each of whose calls is a piece of the work, or as many as ``pieces`` says of it."""

        def call(given: Given) -> Made:
            made = work(given)
            self.add(pieces(given))
            return made

        return call

    def add(self, pieces: int = 1) -> None:
        """Count what has been done since."""
        self._done += pieces
        left = (time.monotonic() - self._start) / self._done * max(self._total - self._done, 0)
        rest = f", {self._rest} {duration(left)} more" if left >= 1 else ""
        self._tell(f"{self._done} of {self._limit}{self._total} {self._what}{rest}")
