"""One row of a verdict, for tests that ask what is made of such rows."""

from __future__ import annotations

import dataclasses
from typing import Any

from skiplab.reproduction.verdict import Verdict

ROW = Verdict(
    study="paper2000/figure-1",
    claim="rises",
    condition="20 layers",
    verdict="holds",
    statistic=2.04,
    low=1.02,
    high=3.08,
    margin=0.0,
    p=0.01,
    p_adjusted=0.02,
    level=0.025,
    paper_value=None,
    runs=8,
    scale="paper",
    kind="greater",
    text="It rises.",
    source="section 2",
    worth=0.5,
    unit="points",
)


def row(**changes: Any) -> Verdict:
    """The row with other fields."""
    return dataclasses.replace(ROW, **changes)
