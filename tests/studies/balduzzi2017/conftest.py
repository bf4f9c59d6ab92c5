"""Results of a study's own trials, computed here, and the same with some numbers changed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from skiplab.reproduction.results import Part, Results, matching
from skiplab.reproduction.study import Study, stage_name
from skiplab.reproduction.trial import Bench, Trial


@pytest.fixture(scope="session")
def ran() -> Callable[[Study, Any], Results]:
    """Run the one stage of a study with settings of our choosing."""

    def run(study: Study, settings: Any) -> Results:
        (stage,) = study.stages
        calls = stage(Results(settings))
        return Results(
            settings,
            [
                Part(call.trial.name, stage_name(stage), call.trial.function(call.settings, Bench()))
                for call in calls
            ],
        )

    return run


@pytest.fixture(scope="session")
def changed() -> Callable[..., Results]:
    """Put other values into some rows: a number, or what a function makes of those rows."""

    def change(results: Results, value: Any, trial: Trial | None = None, **where: Any) -> Results:
        count, parts = 0, []
        for part in results.parts:
            rows = matching(part.table, **where) if trial is None or trial.name == part.trial else []
            if len(rows):
                table = part.table.copy()
                table.loc[rows.index, "value"] = value(rows) if callable(value) else value
                part, count = dataclasses.replace(part, table=table), count + len(rows)
            parts.append(part)
        assert count, "no row was changed"
        return Results(results.settings, parts)

    return change
