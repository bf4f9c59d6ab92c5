"""Studies' trials carried out here and now, without a store, and results with rows of our choosing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.study import Study, stage_name
from skiplab.reproduction.trial import Bench


@pytest.fixture(scope="session")
def carried_out() -> Callable[[Study, Any], Results]:
    """Run all stages of a study with these settings."""

    def carry_out(study: Study, settings: Any) -> Results:
        results = Results(settings)
        for stage in study.stages:
            calls = stage(results)
            of = stage_name(stage)
            tables = [call.trial.function(call.settings, Bench()) for call in calls]
            results = results.and_then(
                [
                    Part(call.trial.name, call.stage or of, table, named_in=of)
                    for call, table in zip(calls, tables, strict=True)
                ]
            )
        return results

    return carry_out


@pytest.fixture(scope="session")
def with_rows() -> Callable[[Results, pd.DataFrame], Results]:
    """The results with these rows, ``results.frame`` after a change, instead of their own."""

    def remake(results: Results, frame: pd.DataFrame) -> Results:
        groups = frame.groupby(["trial", "stage"], observed=True, sort=False)
        parts = [Part(str(trial), str(stage), rows) for (trial, stage), rows in groups]
        return Results(results.settings, parts)

    return remake
