"""What a stored run, verdict or record must be before anyone relies on it: the right fields, of the right kinds.

Files may be edited by hand or come from anyone; a number that is text would only fail pages later, and an escape code
in a name would reach the reader's terminal.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from skiplab.checks import Refused, printable, require
from skiplab.reproduction.study import SCALES

ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
NAME = re.compile(r"[A-Za-z0-9][\w.+-]*", re.ASCII)

Check = Callable[[Any], bool]


def cleaned(value: Any) -> Any:
    """The same JSON with every control character in its texts and names made visible."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [cleaned(each) for each in value]
    if isinstance(value, dict):
        return {printable(name): cleaned(each) for name, each in value.items()}
    return value


def check_run(content: Mapping[str, Any]) -> None:
    """Refuse what is no content of a run.json."""
    _check("a run", content, RUN)
    _check("its provenance", content["provenance"], PROVENANCE, optional=PROVENANCE_TOO)
    for each in content["deviations"].values():
        require(
            _is(dict)(each) and {"declared", "used"} <= each.keys(), "a deviation is not declared and used."
        )
    for each in content["left_out"]:
        _check("a part left out", each, {"part": _is(str), "remedy": _is(str)})
    for each in content["trials"]:
        _check("a trial", each, TRIAL)


def check_record(content: Mapping[str, Any]) -> None:
    """Refuse what is no provenance of a trial."""
    _check("a record", content, {}, optional=RECORD)


def check_fields(what: str, content: Mapping[str, Any], fields: Mapping[str, dataclasses.Field[Any]]) -> None:
    """Refuse values that are not of the kind that a dataclass says."""
    for name, value in content.items():
        # The sentence is made only where it is needed: a scoreboard has some 60,000 of these values.
        if name in fields and not KINDS[str(fields[name].type)](value):
            raise Refused(f"{name} of {what} is {str(value)[:40]!r}.")


def _check(
    what: str, content: Any, wanted: Mapping[str, Check], optional: Mapping[str, Check] | None = None
) -> None:
    require(isinstance(content, Mapping), f"{what} is {type(content).__name__}.")
    for name, is_right in wanted.items():
        require(name in content, f"{what} lacks {name}.")
        require(is_right(content[name]), f"{name} of {what} is {str(content[name])[:40]!r}.")
    for name, is_right in (optional or {}).items():
        if name in content:
            require(is_right(content[name]), f"{name} of {what} is {str(content[name])[:40]!r}.")


def _is(*kinds: type) -> Check:
    return lambda value: isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))


def _number(value: Any) -> bool:
    return _is(int, float)(value)


def _amount(value: Any) -> bool:
    return _number(value) and 0 <= value < 1e15  # more than all seconds; an int may be too large for a float


def _when(value: Any) -> bool:
    try:
        return bool(datetime.fromisoformat(value))
    except (TypeError, ValueError):
        return False


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


RUN: dict[str, Check] = {
    "study": lambda value: isinstance(value, str) and ID.fullmatch(value) is not None,
    "scale": lambda value: isinstance(value, str) and value in SCALES,
    "name": lambda value: isinstance(value, str) and NAME.fullmatch(value) is not None,
    "settings": _is(dict),
    "deviations": _is(dict),
    "left_out": _is(list),
    "trials": _is(list),
    "verdicts": _is(list),
    "provenance": _is(dict),
    "seconds": _amount,
}
PROVENANCE: dict[str, Check] = {"finished": _when}
PROVENANCE_TOO: dict[str, Check] = {
    "seconds": _amount,
    "trials_seconds": _amount,
    "trials_devices": _texts,
    "device": _is(str),
    "data": _is(dict),
}
TRIAL: dict[str, Check] = {
    "key": lambda value: isinstance(value, str) and re.fullmatch(r"[0-9A-Za-z]{1,64}", value) is not None,
    "trial": _is(str),
    "version": _is(int),
    "label": _is(str),
    "stage": _is(str, int),  # of earlier versions, a number
}
RECORD: dict[str, Check] = {
    "seconds": _amount,
    "device": _is(str),
    "source": _is(str),
    "label": _is(str),
    "settings": _is(dict),
    "table_sha256": _is(str),
}
# How the fields of a verdict are annotated.
KINDS: dict[str, Check] = {
    "str": _is(str),
    "bool": _is(bool),
    "int": _is(int),
    "int | None": lambda value: value is None or _is(int)(value),
    "float | None": lambda value: value is None or _number(value),
    "tuple[float | None, ...]": lambda value: (
        isinstance(value, list | tuple) and all(each is None or _number(each) for each in value)
    ),
}
