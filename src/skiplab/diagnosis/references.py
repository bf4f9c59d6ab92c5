"""What networks that train well and networks that train badly have, by quantity: the yardsticks of a diagnosis.

The numbers are in ``references.json``, which ``tools/references.py`` makes from the published runs of our studies
alone: 5, 50 and 95 % of healthy and of sick networks, how well the quantity tells the two apart, and the claims
behind each finding with our verdicts.

>>> str(references().quantities["gradient-decay"].healthy)
'-2.77 to 10.3'
>>> references().quantities["negative-fraction"].says_little
'healthy and sick networks overlap: area under the curve 0.56'
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from skiplab.files import Damaged, read_json

FORM = 1
INFINITY = 1e308  # what stands for it in the file, since JSON has none
PLACE = Path(__file__).with_suffix(".json")
HOLDS, CONTRADICTED, UNDECIDED = "✓", "✗", "?"


@dataclass(frozen=True)
class Range:
    """5, 50 and 95 % of some networks' values, and how many networks these are."""

    low: float
    median: float
    high: float
    n: int

    def __str__(self) -> str:
        return f"{self.low:.3g} to {self.high:.3g}"


@dataclass(frozen=True)
class Quantity:
    """One number per network, and what healthy and sick networks have.

    ``formula`` says how to compute it for another network, ``told_by`` (a key of ``References.rules``) and
    ``outcome`` how healthy networks were told from sick ones; ``never`` is of the sick ones that never learn,
    ``kinds`` of kinds of which none is known to be sick. ``applies`` names what a network must have for the ranges
    to apply (keys of ``References.applies``). ``auc`` is the probability that a sick network has more than a healthy
    one. A quantity with a reason in ``says_little`` must not decide how severe a finding is.
    """

    id: str
    findings: tuple[str, ...]
    instrument: str
    formula: str
    unit: str
    when: str
    networks: str
    scaling: str
    words: str
    paper: str
    studies: tuple[str, ...]
    told_by: str
    outcome: str = ""
    applies: tuple[str, ...] = ()
    healthy: Range | None = None
    sick: Range | None = None
    never: Range | None = None
    kinds: Mapping[str, Range] = field(default_factory=dict)
    auc: float | None = None
    says_little: str = ""

    @property
    def tells(self) -> bool:
        """Whether the quantity may decide how severe a finding is."""
        return not self.says_little

    @property
    def reference(self) -> str:
        """The ranges in words, with the first study behind them and how many more there are."""
        parts = {"healthy networks have": self.healthy, "sick ones": self.sick}
        known = [f"{words} {each}" for words, each in parts.items() if each is not None]
        known = known or [f"networks {name} have {each}" for name, each in self.kinds.items()]
        first, *others = self.studies
        return f"{', '.join(known)} ({first}{f' and {len(others)} more' if others else ''})"


@dataclass(frozen=True)
class Claim:
    """A claim with our verdict, ✓, ✗ or ?; ``place`` is that in the paper, or "ours" for a check of our own."""

    study: str
    claim: str
    place: str
    verdict: str
    text: str
    depends: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} {self.text} ({self.study}, {self.place})"


@dataclass(frozen=True)
class Support:
    """What a finding rests on: the claims, and in ``words`` what our verdicts make of them."""

    words: str
    claims: tuple[Claim, ...]

    @property
    def count(self) -> str:
        """How the papers' own claims came out; our own checks count neither for nor against them."""
        verdicts = [each.verdict for each in self.claims if each.place != "ours"]
        if not verdicts:
            return "no claim of a paper"
        told = {HOLDS: "hold", CONTRADICTED: "contradicted", UNDECIDED: "undecided"}
        counted = ((verdicts.count(sign), words) for sign, words in told.items())
        parts = ", ".join(f"{number} {words}" for number, words in counted if number)
        return f"{len(verdicts)} claim{'s' * (len(verdicts) > 1)}: {parts}"


@dataclass(frozen=True)
class References:
    """All quantities by id, the support of every finding by its id, and which published runs they are from."""

    quantities: Mapping[str, Quantity]
    support: Mapping[str, Support]
    applies: Mapping[str, str]
    rules: Mapping[str, str]  # how healthy networks are told from sick ones, by ``told_by``
    runs: Mapping[str, Mapping[str, Any]]
    caution: str


@functools.cache
def references() -> References:
    """The references that ship with the package."""
    return read_references(PLACE)


def read_references(path: Path) -> References:
    """Read a file of ``tools/references.py``; raise Damaged where it is not as it was written."""
    content = read_json(path, sealed=True)
    if content.get("form") != FORM:
        raise Damaged(f"{path} has form {content.get('form')!r}, but this skiplab reads {FORM}")
    try:
        claims = {name: Claim(*name.rsplit(":", 1), **each) for name, each in content["claims"].items()}
        return References(
            quantities={name: _quantity(name, each) for name, each in content["quantities"].items()},
            support={
                name: Support(each["words"], tuple(claims[claim] for claim in each["claims"]))
                for name, each in content["support"].items()
            },
            applies=content["applies"],
            rules=content["told by"],
            runs=content["runs"],
            caution=content["caution"],
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Damaged(f"{path} lacks something ({type(error).__name__})") from error


def _quantity(name: str, content: Mapping[str, Any]) -> Quantity:
    fields = {key.replace(" ", "_"): each for key, each in content.items()}
    for key in fields.keys() & {"findings", "applies", "studies"}:
        fields[key] = tuple(fields[key])
    for key in fields.keys() & {"healthy", "sick", "never"}:
        fields[key] = _range(fields[key])
    if "kinds" in fields:
        fields["kinds"] = {kind: _range(each) for kind, each in fields["kinds"].items()}
    return Quantity(id=name, **fields)


def _range(content: Mapping[str, float]) -> Range:
    low, median, high = (_unbounded(content[key]) for key in ("low", "median", "high"))
    return Range(low, median, high, int(content["n"]))


def _unbounded(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= INFINITY else value
