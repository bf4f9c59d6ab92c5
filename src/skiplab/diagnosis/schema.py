"""What ``Report.to_dict()`` holds, as a JSON schema (draft 2020-12), for programs that read reports.

No name is ever left out; a number that does not exist or is not finite is null. ``schema`` counts versions of this
description: new names raise it.
"""

from __future__ import annotations

from typing import Any

from skiplab.diagnosis.finding import SEVERITIES
from skiplab.diagnosis.report import SCHEMA_VERSION

_TEXT: dict[str, Any] = {"type": "string"}
_TEXTS: dict[str, Any] = {"type": "array", "items": _TEXT}
_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0}
_SECONDS: dict[str, Any] = {"type": "number", "minimum": 0}


def _object(about: str, **fields: dict[str, Any]) -> dict[str, Any]:
    """An object that has exactly these names."""
    return {
        "description": about,
        "type": "object",
        "properties": fields,
        "required": list(fields),
        "additionalProperties": False,
    }


def _list_of(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


FINDING = _object(
    "One trouble, or one fact worth knowing; where names layers, the one to look at first, and is empty for the "
    "whole network; statistic lies between low and high; usual_low to usual_high is the range of the reference.",
    id=_TEXT | {"pattern": "^[a-z]+(-[a-z]+)*$"},
    severity=_TEXT | {"enum": list(SEVERITIES)},
    where=_TEXTS,
    words=_TEXT,
    unit=_TEXT,
    reference=_TEXT,
    paper=_TEXT,
    support=_TEXT,
    remedy=_TEXTS,
    statistic=_NUMBER,
    low=_NUMBER,
    high=_NUMBER,
    usual_low=_NUMBER,
    usual_high=_NUMBER,
)
MEASURED = _object(
    "One examination that was made; quantities are its smallest and largest value over layers.",
    what=_TEXT,
    question=_TEXT,
    seconds=_SECONDS,
    quantities={
        "type": "object",
        "additionalProperties": {"type": "array", "items": _NUMBER, "minItems": 2, "maxItems": 2},
    },
)
UNMEASURED = _object("One examination that was not made, and why.", what=_TEXT, question=_TEXT, why=_TEXT)
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A diagnosis by skiplab",
} | _object(
    "Findings have the worst first.",
    schema={"const": SCHEMA_VERSION},
    skiplab=_TEXT,
    network=_TEXT,
    parameters=_COUNT,
    samples=_COUNT,
    seconds=_SECONDS,
    notes=_TEXTS,
    findings=_list_of(FINDING),
    measured=_list_of(MEASURED),
    unmeasured=_list_of(UNMEASURED),
)
