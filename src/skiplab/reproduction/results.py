"""Results: what a study's trials left, each row with the trial and the stage that it came from.

Stages, evidence and figures are functions of this one object:

    results.settings                                       the study's settings
    results.rows(train, stage="decide", model="plain")     rows of one trial and stage with these values in columns
    results.sample(train, quantity="accuracy", epoch=30)   one number per seed, in the order of seeds
    results.frame                                          everything, with columns ``trial`` and ``stage``
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from skiplab.checks import Refused, near
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.trial import Trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


@dataclass(frozen=True)
class Part:
    """One trial's table: which trial and stage it belongs to, and the trial's settings as plain data."""

    trial: str
    stage: str
    table: pd.DataFrame = field(repr=False)
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    named_in: str = field(
        default="", repr=False
    )  # the study's stage that named it, where a call says another


@dataclass(frozen=True)
class Results:
    """The tables of a study's trials so far, stage by stage, and the study's settings."""

    settings: Any
    parts: Sequence[Part] = ()

    def and_then(self, parts: Sequence[Part]) -> Results:
        """These results and those of a further stage."""
        return Results(self.settings, (*self.parts, *parts))

    @cached_property
    def frame(self) -> pd.DataFrame:
        """All rows, in the order of stages and trials, with the columns ``trial`` and ``stage``."""
        return self._joined("", ())

    def rows(self, trial: Trial | str = "", *, stage: str | Sequence[str] = (), **where: Any) -> pd.DataFrame:
        """Rows of a trial and of a stage (all, if none is named) whose columns have the values asked for.

        A value that is a list, tuple, set or range stands for any of its members. A column that no row has is
        refused; where there are no rows at all nothing can be said of columns, and nothing is returned.
        """
        frame = self._joined(trial if isinstance(trial, str) else trial.name, _names(stage))
        return matching(frame, **where)

    def sample(
        self,
        trial: Trial | str = "",
        *,
        stage: str | Sequence[str] = (),
        by: str | Sequence[str] = "seed",
        value: str = "value",
        **where: Any,
    ) -> np.ndarray:
        """One number per run: the column ``value`` of the rows asked for, in the order of ``by``."""
        return sample_of(self.rows(trial, stage=stage, **where), by=by, value=value)

    def _joined(self, trial: str, stages: tuple[str, ...]) -> pd.DataFrame:
        """The rows of some parts in one table, made once."""
        made: dict[Any, pd.DataFrame] = self.__dict__.setdefault("_made", {})
        if (trial, stages) not in made:
            made[trial, stages] = joined(
                [
                    part
                    for part in self.parts
                    if trial in ("", part.trial) and (not stages or part.stage in stages)
                ]
            )
        return made[trial, stages]


Found = Callable[[Results], Iterable[Evidence]]  # what a claim's evidence is


def joined(parts: Sequence[Part]) -> pd.DataFrame:
    """The rows of several trials in one table, with the columns ``trial`` and ``stage``."""
    import numpy as np
    import pandas as pd

    if not parts:
        return pd.DataFrame()
    frame = pd.concat([part.table for part in parts], ignore_index=True)
    counts = [len(part.table) for part in parts]
    for column in ("trial", "stage"):
        words = [getattr(part, column) for part in parts]
        kinds = list(dict.fromkeys(words))
        codes = np.repeat([kinds.index(word) for word in words], counts).astype(np.int64)
        frame[column] = pd.Categorical.from_codes(codes.tolist(), categories=pd.Index(kinds))
    return frame


def matching(frame: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """The rows of a table whose columns have the values asked for; a collection stands for any of its members."""
    if not len(frame.columns):
        return frame
    chosen = None
    for column, value in where.items():
        if column not in frame.columns:
            known = list(map(str, frame.columns))
            raise Refused(f"no row has a {column!r}; there are {', '.join(known)}.{near(column, known)}")
        several = isinstance(value, list | tuple | set | frozenset | range)
        mask = frame[column].isin(list(value)) if several else frame[column] == value
        chosen = mask if chosen is None else chosen & mask
    return frame if chosen is None else frame[chosen]


def sample_of(rows: pd.DataFrame, *, by: str | Sequence[str] = "seed", value: str = "value") -> np.ndarray:
    """A column's numbers in the order of another one's, such as one per seed."""
    import numpy as np

    if not len(rows):
        return np.empty(0)
    order = [by] if isinstance(by, str) else list(by)
    return rows.sort_values(order, kind="stable")[value].to_numpy(dtype=float)


def _names(stage: str | Sequence[str]) -> tuple[str, ...]:
    return ((stage,) if stage else ()) if isinstance(stage, str) else tuple(stage)
