"""One claim of a kind, judged on samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from skiplab.reproduction.claim import Claim, Evidence, Kind
from skiplab.reproduction.results import Results
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict, judge


@pytest.fixture(scope="session")
def judged() -> Callable[..., Verdict]:
    """Judges a lone claim of a kind."""

    def verdict(
        kind: Kind, samples: Sequence[Any], paper: float | None = None, unit: str = "", paired: bool = False
    ) -> Verdict:
        evidence = Evidence("all", samples, paper_value=paper, paired=paired)
        claims = [Claim("claim", "text", lambda results: [evidence], kind, unit)]
        study = Study("paper/item", __file__, {}, [], lambda results: None, claims, {})
        (found,) = judge(study, Results(None), "quick")
        return found

    return verdict
