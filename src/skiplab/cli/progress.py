"""Progress bars in a terminal; a line now and then where there is none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from skiplab.reproduction.runner import Watcher
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call, largest
from skiplab.waiting import QUIET_SECONDS


class Bars(Watcher):
    """One bar for a study's trials, and one for each trial in flight.

    With ``say_memory`` it says how much memory the largest trial of a stage takes, for which torch is imported.
    """

    def __init__(self, say_memory: bool = False) -> None:
        self.say_memory = say_memory
        self.console = Console(stderr=True)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
        )
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        self.bars = Progress(*columns, *times, console=self.console, transient=True)
        self.whole: TaskID | None = None
        self.flying: dict[str, TaskID] = {}
        self.total = self.count = 0
        self.last_line = time.monotonic()

    def __enter__(self) -> Bars:
        # Without a terminal bars would only leave empty lines.
        if self.console.is_terminal:
            self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Stopping what never started would print an empty line.
        if self.console.is_terminal:
            self.bars.stop()

    def stage(self, study: Study, total: int, known: int) -> None:
        """Start the study's bar; known trials count as done."""
        for bar in (self.whole, *self.flying.values()):
            if bar is not None:
                self.bars.remove_task(bar)
        self.flying.clear()
        self.total, self.count = total, known
        text = f"{known}/{total} trials"
        self.whole = self.bars.add_task(study.id, total=total, completed=known, text=text)

    def starting(self, calls: Sequence[Call], device: str) -> None:
        """Say what the largest trial takes, before it runs."""
        if not self.say_memory or (found := largest(calls, device)) is None:
            return
        from skiplab.linear_algebra.memory import in_words
        from skiplab.training.memory import room_on

        size, call = found
        text = f"Memory: at most about {in_words(size)} of {in_words(room_on(device))} per trial"
        self.console.print(f"{text} on {device} ({call.label}).", highlight=False, soft_wrap=True)

    def progress(self, label: str, done: float, text: str) -> None:
        """Move a trial's own bar."""
        if label not in self.flying:
            self.flying[label] = self.bars.add_task(f"  {label}", total=1.0, text=text)
        self.bars.update(self.flying[label], completed=done, text=text)
        self._line(f"{label}: {text} ({self.count}/{self.total} trials done)")

    def finished(self, label: str, seconds: float) -> None:
        """Count a trial."""
        self.count += 1
        if label in self.flying:
            self.bars.remove_task(self.flying.pop(label))
        if self.whole is not None:
            self.bars.update(self.whole, advance=1, text=f"{self.count}/{self.total} trials")
        self._line(f"{self.count}/{self.total} trials done, the last in {seconds:.0f} s: {label}")

    def _line(self, text: str) -> None:
        if not self.console.is_terminal and time.monotonic() - self.last_line > QUIET_SECONDS:
            self.last_line = time.monotonic()
            self.console.print(text, highlight=False, soft_wrap=True)
