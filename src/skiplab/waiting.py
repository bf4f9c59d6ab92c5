"""A line at standard error while a call takes long, gone when it ends.

Measurements never print. This is for a person who calls one by ``import skiplab as sl``: studies, which have bars of
their own, call them directly. It needs a terminal or a notebook, the main thread, and a process that no other has
started, so that neither logs nor workers see it.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import math
import multiprocessing
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, ParamSpec, TypeVar

from rich.console import Console
from rich.live import Live
from rich.text import Text

from skiplab.checks import refuse_too_many, refuse_unknown
from skiplab.interruption import unchanged_by_ctrl_c

PATIENCE, PERIOD = 2.0, 1.0  # seconds before the line shows, and between its changes
QUIET_SECONDS = 10.0  # between lines where standard error is no terminal

P = ParamSpec("P")
R = TypeVar("R")


def watched(function: Callable[P, R]) -> Callable[P, R]:
    """The same function with a line while it takes long, which also says the last that a ``tell`` of its was told."""
    parameters = inspect.signature(function).parameters
    can_tell = "tell" in parameters
    kinds = {name: each.kind for name, each in parameters.items()}
    takes_any = {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL} & set(kinds.values())
    places = [name for name, kind in kinds.items() if kind is not inspect.Parameter.KEYWORD_ONLY]

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if not takes_any:
            refuse_too_many(function.__name__, len(args), places)
            refuse_unknown(function.__name__, kwargs, list(parameters))
        with unchanged_by_ctrl_c((*args, *kwargs.values())), Waiting(function.__name__) as line:
            if can_tell:
                kwargs.setdefault("tell", line.tell)
            return function(*args, **kwargs)

    call.__module__ = "skiplab.interface"  # where it can be found by name, as pickle wants
    return call


class Waiting:
    """A context in which who waits is told for how long, and what ``tell`` was told last.

    Where nobody reads along that is silent, unless ``logged``: then it is a line now and then, as a command writes.
    """

    def __init__(self, name: str, *, logged: bool = False) -> None:
        self._name, self._told, self._start = name, "", time.monotonic()
        self._logged = logged
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def tell(self, text: str) -> None:
        """Take the text as what is being done."""
        self._told = text

    def __enter__(self) -> Waiting:
        if (line := _line() or (_now_and_then if self._logged else None)) is not None:
            self._thread = threading.Thread(target=self._show, args=(line,), daemon=True)
            self._thread.start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    def __str__(self) -> str:
        seconds = f"{self._name}: {time.monotonic() - self._start:.0f} s"
        return f"{seconds}, {self._told}" if self._told else seconds

    def __rich__(self) -> Text:
        return Text(str(self), no_wrap=True, overflow="ellipsis")

    def _show(self, line: Line) -> None:
        if self._over.wait(PATIENCE):
            return
        # Whoever has closed standard error meanwhile does not want the line; the work goes on.
        with contextlib.suppress(ValueError, OSError), line(self) as refresh:
            while not self._over.wait(PERIOD):
                refresh()


# A place for a line: shows what it is given until it is left, and shows it again as it is now when called.
Line = Callable[[Waiting], AbstractContextManager[Callable[[], None]]]


def _line() -> Line | None:
    """A line in a terminal or a notebook, if somebody reads there."""
    alone = multiprocessing.parent_process() is None and threading.current_thread() is threading.main_thread()
    if not alone or sys.stderr is None:
        return None
    console = Console(file=sys.stderr)
    if console.is_jupyter:
        return _below_the_cell if importlib.util.find_spec("IPython") else None
    try:
        terminal = sys.stderr.isatty()  # rich alone would believe FORCE_COLOR, which logs set as well
    except (AttributeError, ValueError):  # a logger's object, or closed
        return None
    return functools.partial(_at_the_end, console) if terminal and console.is_interactive else None


@contextlib.contextmanager
def _at_the_end(console: Console, waiting: Waiting) -> Iterator[Callable[[], None]]:
    """The last line of a terminal."""
    # What rich's Status is made of: itself it would send all that the call prints to standard error.
    off: dict[str, Any] = dict.fromkeys(("auto_refresh", "redirect_stdout", "redirect_stderr"), False)
    with Live(waiting, console=console, transient=True, **off) as live:
        yield live.refresh


@contextlib.contextmanager
def _now_and_then(waiting: Waiting) -> Iterator[Callable[[], None]]:
    """Lines of a file or a pipe: one now, and one whenever another has become due."""
    due = -math.inf

    def refresh() -> None:
        nonlocal due
        if sys.stderr is not None and time.monotonic() >= due:
            due = time.monotonic() + QUIET_SECONDS
            print(str(waiting), file=sys.stderr, flush=True)

    refresh()
    yield refresh


@contextlib.contextmanager
def _below_the_cell(waiting: Waiting) -> Iterator[Callable[[], None]]:
    """An output of a notebook's cell that is written over; rich's own needs ipywidgets, which many do not have."""
    display = importlib.import_module("IPython.display").display
    output = display({"text/plain": str(waiting)}, raw=True, display_id=True)
    try:
        yield lambda: output.update({"text/plain": str(waiting)}, raw=True)
    finally:
        output.update({"text/plain": "", "text/html": ""}, raw=True)
