"""A small validator of JSON schemas, for the keywords that ours use; an unknown keyword is an error, not a pass."""

from __future__ import annotations

import re
from typing import Any

KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "null": (type(None),),
}
WORDS = {"$schema", "title", "description"}  # that say nothing about a value


def faults(schema: dict[str, Any], value: Any, where: str = "$") -> list[str]:
    """Where a value is not as a schema wants it, in words; none if it is."""
    found = []
    for keyword, wanted in schema.items():
        if keyword not in WORDS and keyword not in CHECKS:
            raise NotImplementedError(f"the keyword {keyword} is not known to this validator")
        if keyword in CHECKS:
            found += CHECKS[keyword](wanted, value, where, schema)
    return found


def _type(wanted: Any, value: Any, where: str, schema: Any) -> list[str]:
    names = wanted if isinstance(wanted, list) else [wanted]
    right = any(isinstance(value, KINDS[name]) and not isinstance(value, bool) for name in names)
    finite = not isinstance(value, float) or value - value == 0
    return [] if right and finite else [f"{where} is {value!r}, not {' or '.join(names)}"]


def _properties(wanted: Any, value: Any, where: str, schema: Any) -> list[str]:
    own = value if isinstance(value, dict) else {}
    return [
        line for name in wanted if name in own for line in faults(wanted[name], own[name], f"{where}.{name}")
    ]


def _additional(wanted: Any, value: Any, where: str, schema: Any) -> list[str]:
    own = value if isinstance(value, dict) else {}
    others = [name for name in own if name not in schema.get("properties", {})]
    if wanted is False:
        return [f"{where} has {name}" for name in others]
    return [line for name in others for line in faults(wanted, own[name], f"{where}.{name}")]


def _items(wanted: Any, value: Any, where: str, schema: Any) -> list[str]:
    own = value if isinstance(value, list) else []
    return [line for place, each in enumerate(own) for line in faults(wanted, each, f"{where}[{place}]")]


def _says(fails: Any) -> Any:
    return lambda wanted, value, where, schema: [
        f"{where} is {value!r}, against {wanted!r}" for _ in [0] if fails(wanted, value)
    ]


CHECKS: dict[str, Any] = {
    "type": _type,
    "properties": _properties,
    "additionalProperties": _additional,
    "items": _items,
    "required": lambda wanted, value, where, schema: [
        f"{where} lacks {name}" for name in wanted if isinstance(value, dict) and name not in value
    ],
    "enum": _says(lambda wanted, value: value not in wanted),
    "const": _says(lambda wanted, value: value != wanted),
    "pattern": _says(lambda wanted, value: isinstance(value, str) and not re.search(wanted, value)),
    "minimum": _says(lambda wanted, value: isinstance(value, int | float) and value < wanted),
    "minItems": _says(lambda wanted, value: isinstance(value, list) and len(value) < wanted),
    "maxItems": _says(lambda wanted, value: isinstance(value, list) and len(value) > wanted),
}
