"""Verdicts of littwin2017's studies by claim, and their smoke runs with one number changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.results import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge


@pytest.fixture
def verdicts_of() -> Callable[[Study, Results], dict[str, str]]:
    """One verdict per claim."""

    def found(study: Study, results: Results) -> dict[str, str]:
        return {each.claim: each.verdict for each in judgements(judge(study, results, "quick"))}

    return found


@pytest.fixture
def contradicted_by(
    verdicts_of: Callable[..., dict[str, str]],
    smoke_run: Callable[[Study], StudyRun],
    with_rows: Callable[[Results, pd.DataFrame], Results],
) -> Callable[..., set[str]]:
    """Which claims of a smoke run become contradicted when a column of the last matching row is changed."""

    def found(study: Study, column: str, value: float, **where: Any) -> set[str]:
        results = results_of(study, smoke_run(study))
        frame = results.frame.copy()
        chosen = pd.Series(True, index=frame.index)
        for name, wanted in where.items():
            chosen &= frame[name] == wanted
        assert chosen.any()
        frame.loc[frame[chosen].index[-1], column] = value
        before, after = (verdicts_of(study, each) for each in (results, with_rows(results, frame)))
        return {claim for claim, verdict in after.items() if verdict == "contradicted" != before[claim]}

    return found
