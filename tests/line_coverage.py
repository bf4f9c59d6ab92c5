"""Which lines of skiplab the tests ran: `python -m pytest -p tests.line_coverage`, with or without `-n`.

coverage.py's tracer nearly doubles the time of some parts of this suite on Python 3.11, so slipcover's probes note
the lines: they are put into each module as it is imported, here and in every worker of pytest-xdist, and what the
workers saw goes to the controller with their last message. What counts as a line, what is left out and the floor
stand under [tool.coverage] in pyproject.toml: slipcover only notes lines, coverage.py judges them. Lines that are run
by a process which a test starts are not seen.
"""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from pathlib import Path

import pytest
from coverage import Coverage
from slipcover import FileMatcher, ImportManager, Slipcover

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "skiplab"
WORST = 30  # lines of a table that is printed only below the floor
Lines = dict[str, list[int]]  # by the name of a file as its modules know it


class Probes:
    """Notes the lines run of every module below SOURCE that is imported from now on."""

    def __init__(self, omit: list[str]) -> None:
        early = [name for name in sys.modules if name.partition(".")[0] == "skiplab"]
        if early:
            raise pytest.UsageError(f"{early[0]} was imported before its lines could be watched.")
        # A probe that was hit stays where it is, which costs less than slipcover's search for all functions to mend;
        # exclude_lines: that is coverage.py's to judge.
        self.notes = Slipcover(d_miss_threshold=2**31 - 1, exclude_lines=[])
        self.imports = ImportManager(self.notes, FileMatcher(sources=[SOURCE], omit=omit))
        self.imports.__enter__()

    def lines(self) -> Lines:
        self.imports.__exit__()
        files = self.notes.get_coverage()["files"]
        return {str(Path(name).resolve()): found["executed_lines"] for name, found in files.items()}


class LineCoverage:
    """The lines of one process; in the controller of several, of all of them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.rules = Coverage(data_file=None, config_file=str(ROOT / "pyproject.toml"))
        # A controller runs no test itself.
        self.probes = None if _is_controller(config) else Probes(self.rules.get_option("report:omit"))
        self.seen: dict[str, set[int]] = defaultdict(set)
        self.total: float | None = None

    def add(self, lines: Lines) -> None:
        for name, found in lines.items():
            self.seen[name].update(found)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: object, error: object) -> None:
        """A worker has ended: xdist calls this in the controller."""
        self.add(getattr(node, "workeroutput", {}).get("lines", {}))

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.probes:
            lines = self.probes.lines()
            if hasattr(self.config, "workeroutput"):
                self.config.workeroutput["lines"] = lines
                return
            self.add(lines)
        if self.config.option.collectonly:
            return
        self.total, self.table = judged(self.rules, self.seen)
        if self.below and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    @property
    def below(self) -> bool:
        return self.total is not None and self.total < self.rules.get_option("report:fail_under")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.total is None:
            return
        if self.below:
            terminalreporter.section("lines not run")
            terminalreporter.write(self.table)
        floor = self.rules.get_option("report:fail_under")
        said = f"{self.total:.2f} % of the lines were run; the floor is {floor:g} %"
        terminalreporter.write_line(said, red=self.below)


def judged(rules: Coverage, seen: dict[str, set[int]]) -> tuple[float, str]:
    """The share of lines that were run, in percent, and the files with most of the others."""
    data = rules.get_data()
    data.add_lines(seen)
    data.touch_files(str(path) for path in SOURCE.rglob("*.py"))  # what nobody imported counts as well
    table = io.StringIO()
    total = rules.report(file=table, sort="-miss")
    return total, "".join(table.getvalue().splitlines(keepends=True)[:WORST])


def _is_controller(config: pytest.Config) -> bool:
    return bool(getattr(config.option, "numprocesses", None)) and not hasattr(config, "workerinput")


def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    early_config.pluginmanager.register(LineCoverage(early_config), "skiplab-line-coverage")
