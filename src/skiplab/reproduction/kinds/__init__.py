"""The five kinds of claim, one file each; a new kind is a new file and a new name here."""

from __future__ import annotations

from skiplab.checks import one_of
from skiplab.reproduction.kinds.base import Finding, Kind
from skiplab.reproduction.kinds.equivalent import Equivalent
from skiplab.reproduction.kinds.exact import Exact
from skiplab.reproduction.kinds.greater import Greater
from skiplab.reproduction.kinds.ordered import Ordered
from skiplab.reproduction.kinds.value import Value

__all__ = ["KINDS", "Equivalent", "Exact", "Finding", "Greater", "Kind", "Ordered", "Value", "named"]

KINDS: tuple[type[Kind], ...] = (Greater, Ordered, Equivalent, Value, Exact)


def named(name: str) -> type[Kind]:
    """Return the kind that a stored verdict knows by its name."""
    known = {kind.name(): kind for kind in KINDS}
    return known[one_of("Kind of claim", name, known)]
