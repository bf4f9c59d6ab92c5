"""What networks that train well and networks that train badly have, by quantity: the yardsticks of a diagnosis.

The numbers are in ``references.json``, which ``tools/references.py`` makes from the published runs of our studies, and
nothing else: 5, 50 and 95 % of healthy and of sick networks, how well the quantity tells the two apart, and the claims
behind each finding with our verdicts.

>>> decay = references().quantities["gradient-decay"]
>>> decay.side(0.0), decay.side(50.0)
('healthy', 'sick')
>>> references().quantities["negative-fraction"].says_little
'healthy and sick networks overlap: area under the curve 0.56'
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skiplab.checks import one_of
from skiplab.files import Damaged, read_json

FORM = 1
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

    ``formula`` says how to compute it for another network, ``told_by`` and ``outcome`` how healthy ones were told
    from sick ones, ``never`` is of the sick ones that never learn, ``auc`` the probability that a sick network has
    more than a healthy one. A quantity with a reason in ``says_little`` must not decide how severe a finding is.
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
    outcome: str
    healthy: Range | None
    sick: Range | None
    never: Range | None
    kinds: Mapping[str, Range]
    auc: float | None
    says_little: str

    @property
    def tells(self) -> bool:
        """Whether the quantity may decide how severe a finding is."""
        return not self.says_little

    @property
    def sick_is_larger(self) -> bool:
        """Whether sick networks have more of it than healthy ones."""
        return self.auc is not None and self.auc > 0.5

    def side(self, value: float) -> str:
        """Where a value lies: "healthy", "doubtful", "sick", or "unknown" where the quantity says little.

        Healthy is all that does not leave the healthy range towards the sick one; sick is what lies in the sick range
        or beyond it; doubtful is what lies between the two ranges.
        """
        if not self.tells or self.healthy is None or self.sick is None or value != value:
            return "unknown"
        sign = 1 if self.sick_is_larger else -1
        healthy, sick = (self.healthy.high, self.sick.low) if sign > 0 else (self.healthy.low, self.sick.high)
        if sign * value <= sign * healthy:
            return "healthy"
        return "sick" if sign * value >= sign * sick else "doubtful"

    @property
    def reference(self) -> str:
        """The ranges in a sentence, with the study behind them."""
        parts = {"healthy networks have": self.healthy, "sick ones": self.sick}
        known = [f"{words} {each}" for words, each in parts.items() if each is not None]
        known = known or [f"networks {name} have {each}" for name, each in self.kinds.items()]
        return f"{', '.join(known)} ({', '.join(self.studies)})"


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
    rules: Mapping[str, str]  # how healthy networks are told from sick ones, by ``told_by``
    runs: Mapping[str, Mapping[str, Any]]

    def of(self, finding: str) -> tuple[Quantity, ...]:
        """The quantities that may decide about a finding, the best separated first."""
        one_of("finding", finding, self.support)
        fit = [each for each in self.quantities.values() if finding in each.findings and each.tells]
        return tuple(sorted(fit, key=lambda each: -abs((each.auc or 0.5) - 0.5)))


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
            rules=content["told by"],
            runs=content["runs"],
        )
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise Damaged(f"{path} lacks something ({type(error).__name__})") from error


def _quantity(name: str, content: Mapping[str, Any]) -> Quantity:
    fields = {key.replace(" ", "_"): each for key, each in content.items()}
    for key in ("findings", "studies"):
        fields[key] = tuple(fields[key])
    for key in ("healthy", "sick", "never"):
        fields[key] = None if fields[key] is None else Range(**fields[key])
    fields["kinds"] = {kind: Range(**each) for kind, each in fields["kinds"].items()}
    return Quantity(id=name, **fields)
