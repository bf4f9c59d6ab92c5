"""Declaring settings without copying them: one class, and what each scale changes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
Kind = TypeVar("Kind")


def scales(
    settings: type[Kind], *, quick: Mapping[str, Any], smoke: Mapping[str, Any], **paper: Any
) -> dict[str, Kind]:
    """Settings by scale: the class's defaults, with ``paper`` changed, are the paper's; the others change more.

    >>> scales(dict, quick={"runs": 5}, smoke={"runs": 1}, width=8)
    {'smoke': {'width': 8, 'runs': 1}, 'quick': {'width': 8, 'runs': 5}, 'paper': {'width': 8}}
    """
    return {
        "smoke": settings(**{**paper, **smoke}),
        "quick": settings(**{**paper, **quick}),
        "paper": settings(**paper),
    }


def subset(settings: type[Kind], of: Any, **more: Any) -> Kind:
    """A trial's settings from a study's: the fields that both have, and what is given besides."""
    names = {field.name for field in dataclasses.fields(settings)} & set(vars(of))  # type: ignore[arg-type]
    return settings(**{name: getattr(of, name) for name in names if name not in more}, **more)


def chunks(items: Sequence[T], size: int) -> list[tuple[T, ...]]:
    """Items in groups of at most so many, in their order; which runs share a trial must not depend on memory.

    >>> chunks(range(5), 2)
    [(0, 1), (2, 3), (4,)]
    """
    return [tuple(items[start : start + size]) for start in range(0, len(items), size)]
