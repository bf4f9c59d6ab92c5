"""A study: one figure, table or theorem of a paper, from the trials it names to its claims.

The declaration holds everything that can be said without running anything, and imports neither torch,
scipy nor pandas; the functions it carries import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.claim import Claim, Greater, Kind
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import pandas as pd

SCALES = ("smoke", "quick", "paper")

# A stage names trials from the settings and the tables of the stages before it (one table a stage), so
# that a grid search can decide what is trained next.
Stage = Callable[[Any, Sequence["pd.DataFrame"]], list[Call]]


@dataclass(frozen=True)
class Study:
    """One item of a paper. See CONTRIBUTING.md for how to write one.

    ``described`` says in our words what the paper's text says of its own figure, to be read beside ours. ``kind``,
    ``unit`` and ``source`` are those of every claim that names none.
    """

    id: str
    item: str
    title: str
    caption: str
    settings: Mapping[str, Any]
    stages: Sequence[Stage] = field(repr=False)
    table: Callable[[Any, Sequence[pd.DataFrame]], pd.DataFrame] = field(repr=False)
    figure: Callable[[pd.DataFrame, Any], Any] = field(repr=False)
    claims: Sequence[Claim] = field(repr=False)
    cost: Mapping[str, float]
    paper_device: str = "cpu"
    choices: Sequence[str] = ()
    errata: Sequence[str] = ()
    described: str = ""
    alpha: float = 0.05
    in_tour: bool = False
    kind: Kind = field(default_factory=Greater)
    unit: str = ""
    source: str = "paper"
    paper: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "paper", self.id.split("/")[0])
        filled = tuple(claim.filled(self.kind, self.unit, self.source) for claim in self.claims)
        object.__setattr__(self, "claims", filled)


@dataclass(frozen=True)
class Paper:
    """A paper whose items are studies."""

    id: str
    title: str
    authors: str
    year: int
    explains: str
