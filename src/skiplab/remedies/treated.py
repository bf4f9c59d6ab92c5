"""What every remedy returns: a changed copy, and what was changed in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from skiplab.checks import listed, no_such, require
from skiplab.subjects.blocks import shown


@dataclass(frozen=True, repr=False)
class Treated:
    """A copy of a network to which a remedy was applied; the network itself is as it was.

    ``changed`` says what was changed and what was left out, ``penalty(model)`` is added to the loss in training where
    the remedy is one.
    """

    model: nn.Module
    changed: str
    penalty: Callable[[nn.Module], Tensor] | None = None

    def __repr__(self) -> str:
        return f"{type(self.model).__name__} treated: {self.changed}"


def chosen(what: str, names: Iterable[str], where: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """Those of the names that are in, contain or lie inside what ``where`` names; all of them where it is None.

    Refuses a name that is not known, and one that none of the names has to do with.
    """
    listed("where", where)
    names = list(names)
    if where is None:
        return names
    require(len(where) > 0, "where is empty; name a layer, or leave it out for all.")
    every = {*known, *names}
    found: set[str] = set()
    for wanted in where:
        if wanted not in every:
            raise no_such("layer", wanted, [*names, *every])
        met = {name for name in names if related(name, wanted)}
        some = shown(names) if names else "none"
        require(bool(met), f"{wanted!r} is no {what} that can be treated; choose among {some}.")
        found |= met
    return [name for name in names if name in found]


def related(one: str, other: str) -> bool:
    """Whether two names are the same or one is of a part of the other; the network itself is called ''."""
    return f"{one}.".startswith(f"{other}." if other else "") or f"{other}.".startswith(
        f"{one}." if one else ""
    )


def counted(names: Sequence[str], total: int, noun: str) -> str:
    """In words: "14 of 15 blocks (0, 1 … 14)"."""
    many = f"{len(names)} of {total}" if len(names) != total else f"{'all ' * (total > 1)}{total}"
    places = shown([name or "the network" for name in names])  # which has no name where it is one layer
    return f"{many} {noun}{'s' * (total != 1)} ({places})"
