"""A trial: a function with a version, called with frozen settings.

Its key is the hash of (function, version, settings, data), not of the study that asked for it, so a
trial that several studies name runs once. Settings at their default are left out of the key: a new
field with a neutral default therefore keeps old results valid. Changing what a default *means* needs a
new version.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Bench:
    """Where a trial works: the device, a folder for checkpoints, and whom to tell of progress."""

    device: str = "cpu"
    checkpoints: Path | None = None
    deadline: float | None = None
    tell: Callable[[float, str], None] = lambda done, text: None


_KNOWN: dict[str, int] = {}


def versions_at_hand() -> dict[str, int]:
    """The current version of every trial that has been declared, by name."""
    return dict(_KNOWN)


class Trial:
    """A versioned function ``function(settings, bench) -> DataFrame``; made by ``@trial``."""

    def __init__(self, function: Callable[[Any, Bench], pd.DataFrame], version: int) -> None:
        self.function = function
        self.version = version
        self.module = function.__module__
        self.attribute = function.__name__
        self.__doc__ = function.__doc__
        _KNOWN[self.name] = version

    @property
    def name(self) -> str:
        """Short stable name, e.g. ``orhan2017.networks.train``."""
        return f"{self.module.removeprefix('skiplab.').removeprefix('studies.')}.{self.attribute}"

    def of(self, settings: Any, label: str = "") -> Call:
        """Name this trial with its settings; nothing runs yet."""
        return Call(self, settings, label or self.attribute)

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers import the trial by name, so that they run the code they have on disk.
        return _find, (self.module, self.attribute)


def _find(module: str, attribute: str) -> Trial:
    found = getattr(importlib.import_module(module), attribute)
    assert isinstance(found, Trial)
    return found


def trial(version: int) -> Callable[[Callable[[Any, Bench], pd.DataFrame]], Trial]:
    """Turn a function into a trial; raise the version when its numbers would move."""
    return lambda function: Trial(function, version)


@dataclass(frozen=True)
class Call:
    """A trial with its settings: one unit of work, one table."""

    trial: Trial
    settings: Any
    label: str = dataclasses.field(default="", compare=False)

    def key(self, fingerprint: Callable[[str], str]) -> str:
        """Hash (function, version, settings, data); fingerprint maps a data name to its hash."""
        settings = changed_settings(self.settings)
        data = getattr(self.settings, "data", None)
        parts = [self.trial.name, self.trial.version, settings, fingerprint(data) if data else None]
        text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:32]


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
