"""A line in the terminal while a call takes long, gone when it ends.

Measurements never print. This is for a person who calls one by ``import skiplab as sl``: studies, which have bars of
their own, call them directly. It needs a terminal at standard error, the main thread, and a process that no other has
started, so that neither logs nor workers see it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import multiprocessing
import os
import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

PATIENCE, PERIOD = 2.0, 1.0  # seconds before the line shows, and between its changes
_CLEARED = "\r\x1b[K"

P = ParamSpec("P")
R = TypeVar("R")


def watched(function: Callable[P, R]) -> Callable[P, R]:
    """The same function with a line while it takes long, which also says the last that a ``tell`` of its was told."""
    can_tell = "tell" in inspect.signature(function).parameters

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with Line(function.__name__) as line:
            if can_tell:
                kwargs.setdefault("tell", line.tell)
            return function(*args, **kwargs)

    call.__module__ = "skiplab.interface"  # where it can be found by name, as pickle wants
    return call


class Line:
    """A context in which who waits is told for how long, and what ``tell`` was told last."""

    def __init__(self, name: str) -> None:
        self._name, self._told, self._shown = name, "", False
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def tell(self, text: str) -> None:
        """Take the text as what is being done."""
        self._told = text

    def __enter__(self) -> Line:
        if _has_reader():
            self._start = time.monotonic()
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            if self._shown:
                _write(_CLEARED)

    def _watch(self) -> None:
        pause = PATIENCE
        while not self._over.wait(pause):
            seconds = f"{self._name}: {time.monotonic() - self._start:.0f} s"
            text = f"{seconds}, {self._told}" if self._told else seconds
            _write(_CLEARED + text[: shutil.get_terminal_size().columns - 1])
            self._shown, pause = True, PERIOD


def _has_reader() -> bool:
    try:
        at_a_terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # None, a logger's object, or closed
        return False
    return (
        at_a_terminal
        and os.environ.get("TERM") != "dumb"
        and multiprocessing.parent_process() is None
        and threading.current_thread() is threading.main_thread()
    )


def _write(text: str) -> None:
    # Whoever has replaced or closed standard error meanwhile does not want the line; the work goes on.
    with contextlib.suppress(AttributeError, ValueError, OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
