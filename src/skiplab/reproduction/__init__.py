"""What a study is, in general: trials, results, claims, verdicts; running, storing and publishing them.

A study's declaration imports from here, and neither torch nor scipy nor pandas comes with it.
"""

from skiplab.reproduction.claim import (
    NOT_RUN,
    NOT_SAID,
    Claim,
    Equivalent,
    Evidence,
    Exact,
    Greater,
    Ordered,
    Value,
)
from skiplab.reproduction.results import Found, Results
from skiplab.reproduction.scales import chunks, scales, subset
from skiplab.reproduction.study import Paper, Study
from skiplab.reproduction.trial import Bench, Call, trial

__all__ = [
    "NOT_RUN",
    "NOT_SAID",
    "Bench",
    "Call",
    "Claim",
    "Equivalent",
    "Evidence",
    "Exact",
    "Found",
    "Greater",
    "Ordered",
    "Paper",
    "Results",
    "Study",
    "Value",
    "chunks",
    "scales",
    "subset",
    "trial",
]
