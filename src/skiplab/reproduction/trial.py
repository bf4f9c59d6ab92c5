"""A trial: a function with a name and a version, called with frozen settings.

Its key is the hash of (name, version, settings, data), not of the study that asked for it, so a trial that several
studies name runs once. The name is written down, never derived from a module: code can move and results stay.
Settings at their default are left out of the key: a new field with a neutral default therefore keeps old results
valid. Changing what a default *means* needs a new version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from skiplab.checks import require

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Bench:
    """Where a trial works: the device, a folder for checkpoints, and whom to tell of progress."""

    device: str = "cpu"
    checkpoints: Path | None = None
    deadline: float | None = None
    tell: Callable[[float, str], None] = lambda done, text: None


_KNOWN: dict[str, Trial] = {}
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9]+(-[a-z0-9]+)*")


def versions_at_hand() -> dict[str, int]:
    """The current version of every trial that has been declared, by name."""
    return {name: known.version for name, known in _KNOWN.items()}


class Trial:
    """A named, versioned function ``function(settings, bench) -> DataFrame``; made by ``@trial``.

    ``memory(settings, device)`` says about how many bytes it takes, where that may be much.
    """

    def __init__(
        self,
        function: Callable[[Any, Bench], pd.DataFrame],
        name: str,
        version: int,
        memory: Callable[[Any, str], int] | None = None,
    ) -> None:
        require(
            NAME.fullmatch(name) is not None, f"{name!r} is no name of a trial; write 'paper/what-it-does'."
        )
        self.function = function
        self.name = name
        self.version = version
        self.memory = memory
        self.home = (function.__module__, function.__name__)
        self.__doc__ = function.__doc__
        other = _KNOWN.setdefault(name, self)
        # A module imported twice, as notebooks and __main__ do, declares its trials again.
        same = other.file == self.file and other.home[1] == self.home[1]
        require(same, f"two trials are called {name!r}, in {other.file} and {self.file}; rename one.")
        _KNOWN[name] = self

    @property
    def file(self) -> str:
        """Where its function is written."""
        return self.function.__code__.co_filename

    def of(self, settings: Any, label: str = "", *, stage: str = "") -> Call:
        """Name this trial with its settings; nothing runs yet. ``stage`` says what its rows are for, if not the
        study's stage that names it: "search" for runs that only choose."""
        return Call(self, settings, label or self.home[1], stage)

    def __repr__(self) -> str:
        return f"<trial {self.name}, version {self.version}>"

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers import the trial by name, so that they run the code they have on disk.
        return _find, (*self.home, self.file)


def _find(module: str, attribute: str, file: str) -> Trial:
    # A study of one's own lies in a file that no package holds.
    home = sys.modules.get(module) or (
        importlib.import_module(module) if importlib.util.find_spec(module) else load_file(Path(file), module)
    )
    found = getattr(home, attribute)
    assert isinstance(found, Trial)
    return found


def load_file(path: Path, module: str = "") -> ModuleType:
    """Import a Python file that is in no package, under its own name."""
    spec = importlib.util.spec_from_file_location(module or path.stem, path)
    require(
        spec is not None and spec.loader is not None, f"{path} is no Python file; name one that ends in .py."
    )
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = found
    spec.loader.exec_module(found)
    return found


def trial(
    name: str, *, version: int, memory: Callable[[Any, str], int] | None = None
) -> Callable[[Callable[[Any, Bench], pd.DataFrame]], Trial]:
    """Turn a function into a trial; raise the version when its numbers would move."""
    return lambda function: Trial(function, name, version, memory)


@dataclass(frozen=True)
class Call:
    """A trial with its settings: one unit of work, one table."""

    trial: Trial
    settings: Any
    label: str = dataclasses.field(default="", compare=False)
    stage: str = dataclasses.field(default="", compare=False)

    def key(self, fingerprint: Callable[[str], str]) -> str:
        """Hash (name, version, settings, data); fingerprint maps a data name to its hash."""
        settings = changed_settings(self.settings)
        data = getattr(self.settings, "data", None)
        parts = [self.trial.name, self.trial.version, settings, fingerprint(data) if data else None]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


def largest(calls: Sequence[Call], device: str) -> tuple[int, Call] | None:
    """The call that takes most memory on a device, and its bytes; None where no trial says how much it takes."""
    sized = [(call.trial.memory(call.settings, device), call) for call in calls if call.trial.memory]
    return max(sized, key=lambda pair: pair[0], default=None)


def changed_settings(settings: Any) -> dict[str, Any]:
    """Fields of a frozen settings object that differ from their declared defaults, JSON-ready."""
    return {
        field.name: plain(getattr(settings, field.name))
        for field in dataclasses.fields(settings)
        if field.default is dataclasses.MISSING or getattr(settings, field.name) != field.default
    }


def plain(value: Any) -> Any:
    """Turn tuples and nested settings into lists and dicts, so that JSON writes them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return changed_settings(value)
    if isinstance(value, tuple | list):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    return value
