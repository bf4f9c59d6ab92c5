"""The shapes of JSON that docs/json.md shows, and in what a value differs from one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[2] / "docs/json.md"
KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "whole number": (int,),
    "true or false": (bool,),
    "null": (type(None),),
}


def shapes() -> dict[str, Any]:
    """The shape of every command, by its name."""
    blocks = re.findall(r"<!-- shape (\w+) -->\n```json\n(.*?)```", PAGE.read_text(), re.DOTALL)
    found = {name: json.loads(text) for name, text in blocks}
    found["check.claims"] = found["check"]["claims"][0]
    return found


def mismatches(shape: Any, value: Any, known: dict[str, Any], where: str = "$") -> list[str]:
    """Where a value is not of a shape, in words; none if it is."""
    if isinstance(shape, str):
        if shape.startswith("shape "):
            return mismatches(known[shape.removeprefix("shape ")], value, known, where)
        return [] if _is_of(shape, value) else [f"{where} is {value!r}, not {shape}"]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        each = [mismatches(shape[0], entry, known, f"{where}[{n}]") for n, entry in enumerate(value)]
        return [line for lines in each for line in lines]
    if not isinstance(value, dict):
        return [f"{where} is no object"]
    others = shape.get("*")
    lines = [f"{where} lacks {name}" for name in shape if name != "*" and name not in value]
    for name, entry in value.items():
        own = shape.get(name, others)
        lines += [f"{where} has {name}"] if own is None else mismatches(own, entry, known, f"{where}.{name}")
    return lines


def _is_of(words: str, value: Any) -> bool:
    if words == "anything":
        return True
    if " | " in words:
        return value in words.split(" | ")
    if words in KINDS:
        return isinstance(value, KINDS[words]) and (isinstance(value, bool) == (words == "true or false"))
    return any(_is_of(part, value) for part in words.split(" or "))
