"""A study's settings at a scale, with a user's overrides typed, checked and remembered as deviations."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
import types
import typing
from collections.abc import Mapping
from typing import Any

from skiplab import data
from skiplab.checks import DataMissing, Refused, at_least, near, one_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import plain


@dataclasses.dataclass(frozen=True)
class Chosen:
    """Settings ready to run, how they deviate from the declared ones, and the parts without data."""

    scale: str
    settings: Any
    deviations: dict[str, dict[str, Any]]
    left_out: list[dict[str, str]]

    @property
    def name(self) -> str:
        """The run's name in the store: the scale, with a short hash of the deviations behind it."""
        if not self.deviations:
            return self.scale
        used = {key: value["used"] for key, value in sorted(self.deviations.items())}
        return f"{self.scale}+{hashlib.sha256(json.dumps(used).encode()).hexdigest()[:8]}"


def choose(study: Study, scale: str, overrides: Mapping[str, Any]) -> Chosen:
    """Apply overrides to the declared settings and leave out data sets that are not here.

    Raises DataMissing when nothing is left; a missing set is never replaced by another silently.
    """
    one_of("scale", scale, study.settings)
    declared = study.settings[scale]
    hints = typing.get_type_hints(type(declared))
    known = [field.name for field in dataclasses.fields(declared)]
    changes = {}
    for key, value in overrides.items():
        if key not in known:
            raise Refused(f"{study.id} has no setting {key!r}; it has {', '.join(known)}.{near(key, known)}")
        changes[key] = _typed(value, hints[key], key)
        if key != "data":  # which has words of its own
            _check_sense(key, changes[key], [getattr(each, key) for each in study.settings.values()])
    settings = dataclasses.replace(declared, **changes)
    deviations = {
        key: {"declared": plain(getattr(declared, key)), "used": plain(getattr(settings, key))}
        for key in changes
        if getattr(settings, key) != getattr(declared, key)
    }
    settings, left_out = _with_data_at_hand(study, settings)
    return Chosen(scale, settings, deviations, left_out)


def _with_data_at_hand(study: Study, settings: Any) -> tuple[Any, list[dict[str, str]]]:
    wanted = getattr(settings, "data", None)
    if wanted is None:
        return settings, []
    if not wanted:
        raise Refused(f"{study.id} needs a data set; name one of {', '.join(data.NAMES)} with --data.")
    for name in wanted:
        one_of("data set", name, data.NAMES)
    here = tuple(name for name in wanted if data.is_available(name))
    missing = [name for name in wanted if name not in here]
    if not here:
        raise DataMissing(
            f"{study.id} needs {' and '.join(missing)}, not found in {data.root()}; get it with "
            f"`{data.remedy(missing[0])}`, or try `skiplab run {study.id} --data digits`."
        )
    left_out = [{"part": name, "remedy": data.remedy(name)} for name in missing]
    return dataclasses.replace(settings, data=here), left_out


def _typed(value: Any, hint: Any, key: str) -> Any:
    """Read words as the declared type, and turn Python's lists into tuples, which can be hashed."""
    if isinstance(value, str):
        return parse(value, hint, key)
    return tuple(value) if isinstance(value, list) else value


def _check_sense(key: str, value: Any, declared: list[Any]) -> None:
    """Refuse what would only fail later: a count below all that the study declares, or nothing to go through.

    The declared values of all scales say what a setting is: where none is below 1 it counts something (layers,
    images, runs), where some is 0 it may be left out, and only a list that some scale leaves empty may be empty.
    """
    numbers = [number for each in declared for number in _whole(each)]
    if numbers:
        for number in _whole(value):
            at_least(key, number, min(1, *numbers))
    if isinstance(value, tuple) and not value and () not in declared:
        raise Refused(
            f"setting {key} has no values, but needs at least one; leave it out or write {key}=VALUE,…."
        )


def _whole(value: Any) -> list[int]:
    """The whole numbers of a setting: it is one, or a list of them."""
    parts = value if isinstance(value, tuple) else (value,)
    return [part for part in parts if isinstance(part, int) and not isinstance(part, bool)]


# How a type is called in a refusal.
WORDS = {int: "a whole number", float: "a number", bool: "true or false"}


def settings_of(study: Study, run: StudyRun) -> Any:
    """The settings object that a stored run was made with, whatever the study declares by now.

    A field that the run does not know was added later, with the old way as its default.
    """

    def hashable(value: Any) -> Any:
        return tuple(map(hashable, value)) if isinstance(value, list) else value

    declared = study.settings[run.scale]
    used = {key: hashable(value) for key, value in run.settings.items()}
    added = {field.name for field in dataclasses.fields(declared)} - set(used)
    return dataclasses.replace(declared, **used, **{name: _first_default(declared, name) for name in added})


def _first_default(settings: Any, name: str) -> Any:
    """A field's default in the class that introduces it; without one, its declared value."""
    introduces = next(
        each for each in reversed(type(settings).__mro__) if name in vars(each).get("__annotations__", {})
    )
    return vars(introduces).get(name, getattr(settings, name))


def parse(text: str, hint: Any, key: str) -> Any:
    """Read a setting from the command line as its declared type; tuples are separated by commas."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        if text.lower() == "none" and type(None) in args:
            return None
        hint = next(arg for arg in args if arg is not type(None))
        return parse(text, hint, key)
    if origin is tuple:
        return tuple(parse(part.strip(), args[0], key) for part in text.split(",") if part.strip())
    try:
        if hint is bool:
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        return hint(text)
    except (ValueError, KeyError):
        kind = WORDS.get(hint, getattr(hint, "__name__", str(hint)))
        raise Refused(f"setting {key} takes {kind}, not {text!r}; write --set {key}=VALUE.") from None


def parse_duration(text: str) -> float:
    """Read '90', '90s', '9m' or '2h' as seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip())
    if not match:
        raise Refused(f"{text!r} is not a duration; write 90s, 9m or 2h.")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]
