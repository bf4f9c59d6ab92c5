"""A study: one figure, table or theorem of a paper, from the trials it names to its claims.

The declaration holds everything that can be said without running anything, and imports neither torch,
scipy nor pandas; the functions it carries import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.claim import OURS, Claim, Kind, is_place
from skiplab.reproduction.trial import Call
from skiplab.reproduction.words import read

if TYPE_CHECKING:
    from skiplab.reproduction.results import Results

SCALES = ("smoke", "quick", "paper")

# A stage names trials from the settings and the results of the stages before it, so that a grid search can decide
# what is trained next. Its rows bear the function's name, or the stage that a call says it is for.
Stage = Callable[["Results"], Sequence[Call]]


@dataclass(frozen=True)
class Study:
    """One item of a paper. See CONTRIBUTING.md for how to write one.

    ``words=__file__`` names the declaring file, beside which a Markdown file says what is said of the study.
    ``item`` follows from the id (figure-7 is Figure 7) unless it is given. ``kind``, ``unit``, ``source`` are those
    of every claim that names none; a study that names no source quotes its own item, and
    one that is no place in a paper speaks for itself ("ours").
    """

    id: str
    words: str
    settings: Mapping[str, Any]
    stages: Sequence[Stage] = field(repr=False)
    figure: Callable[[Results], Any] = field(repr=False)
    claims: Sequence[Claim] = field(repr=False)
    cost: Mapping[str, float]
    paper_device: str = "cpu"
    alpha: float = 0.05
    in_tour: bool = False
    item: str = ""
    kind: Kind | None = None
    unit: str = ""
    source: str = ""
    paper: str = field(init=False)

    def __post_init__(self) -> None:
        paper, _, name = self.id.partition("/")
        kind, _, number = name.partition("-")
        object.__setattr__(self, "paper", paper)
        object.__setattr__(self, "item", self.item or f"{kind.capitalize()} {number}".strip())
        source = self.source or (self.item[0].lower() + self.item[1:] if is_place(self.item) else OURS)
        filled = tuple(claim.filled(self.kind, self.unit, source) for claim in self.claims)
        object.__setattr__(self, "claims", filled)

    @property
    def title(self) -> str:
        """What the item shows, in a line."""
        return read(self.words).title

    @property
    def caption(self) -> str:
        """What is to be seen in our figure."""
        return read(self.words).caption

    @property
    def described(self) -> str:
        """In our words, what the paper's text says of its own figure, to be read beside ours."""
        return read(self.words).described

    @property
    def choices(self) -> tuple[str, ...]:
        """What is ours, where the paper is silent."""
        return read(self.words).choices

    @property
    def errata(self) -> tuple[str, ...]:
        """What the paper gets wrong."""
        return tuple(erratum.text for erratum in read(self.words).errata)

    @property
    def amendments(self) -> tuple[str, ...]:
        """What was changed after results were seen, each with its date and the old verdict."""
        return read(self.words).amendments


@dataclass(frozen=True)
class Alias:
    """An item that repeats another paper's: the same trials and figure under its own id, found by the other's.

    ``words`` and ``claims`` are its own; where none are given, the other study's stand in.
    """

    id: str
    of: str
    words: str = ""
    claims: Sequence[Claim] = field(default=(), repr=False)

    def resolved(self, study: Study) -> Study:
        """The other study under this id, with what this item says itself."""
        words, claims = self.words or study.words, self.claims or study.claims
        return replace(study, id=self.id, item="", in_tour=False, words=words, claims=claims, source="")


def stage_name(stage: Stage) -> str:
    """What the rows of a stage's trials are marked with."""
    return str(getattr(stage, "__name__", getattr(getattr(stage, "func", None), "__name__", "stage")))


@dataclass(frozen=True)
class Paper:
    """A paper whose items are studies; ``carried_by`` names the claims its argument rests on, as "item claim"."""

    id: str
    title: str
    authors: str
    year: int
    explains: str
    carried_by: Sequence[str] = ()
    arxiv: str = ""  # its number there, with the version where several differ

    @property
    def link(self) -> str:
        """Where the paper can be read; empty where nobody said."""
        return f"https://arxiv.org/abs/{self.arxiv}" if self.arxiv else ""
