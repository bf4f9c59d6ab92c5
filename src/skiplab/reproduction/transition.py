"""For studies not yet written on Results; goes when the last one is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from skiplab.reproduction.results import Results
from skiplab.reproduction.study import Study, stage_name


def _arguments(function: Callable[..., Any]) -> int:
    given = inspect.signature(function).parameters.values()
    return sum(each.default is each.empty and each.kind is not each.VAR_KEYWORD for each in given)


def stage_tables(study: Study, results: Results) -> list[Any]:
    from skiplab.reproduction.results import joined

    tables = []
    for stage in study.stages:
        parts = [part for part in results.parts if part.named_in == stage_name(stage)]
        if parts:
            tables.append(joined(parts).drop(columns=["trial", "stage"]))
    return tables


def calls_of(study: Study, stage: Callable[..., Any], results: Results) -> Any:
    if _arguments(stage) == 1:
        return stage(results)
    return stage(results.settings, stage_tables(study, results))


def table_of(study: Study, results: Results) -> Any:
    if study.table is None:
        return results.frame
    return study.table(results.settings, stage_tables(study, results))


def ask(study: Study, function: Callable[..., Any], results: Results) -> Any:
    if _arguments(function) == 1:
        return function(results)
    made = results.__dict__.setdefault("_legacy", {})
    if "table" not in made:
        made["table"] = table_of(study, results)
    return function(made["table"], results.settings)
