"""What was measured on a network and what was not: the evidence from which findings are made."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, TypeVar

from skiplab.diagnosis.patient import Patient
from skiplab.diagnosis.scan import Scan
from skiplab.measurements.result import Result

R = TypeVar("R", bound=Result)


@dataclass(frozen=True)
class Examined:
    """One examination that was made: its result, and the seconds it took."""

    name: str
    question: str
    result: Result
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """What was measured and what came out, as JSON has it."""
        return {"what": self.name, "question": self.question, "seconds": round(self.seconds, 2)} | {
            "quantities": {name: _span(each) for name, each in self.result.estimates.items()}
        }


@dataclass(frozen=True)
class Unmeasured:
    """One examination that was not made, and why."""

    name: str
    question: str
    why: str

    def to_dict(self) -> dict[str, str]:
        """What was not measured and why."""
        return {"what": self.name, "question": self.question, "why": self.why}


@dataclass
class Chart:
    """All examinations of a patient; rules read it."""

    patient: Patient
    scan: Scan
    measured: dict[str, Examined] = field(default_factory=dict)
    unmeasured: dict[str, Unmeasured] = field(default_factory=dict)
    read: set[str] = field(default_factory=set)  # examinations that rules asked for and that were made

    def get(self, kind: type[R], name: str | None = None) -> R | None:
        """The result of a kind, and of an examination where several have results of that kind, if there is one."""
        for each in self.measured.values():
            if isinstance(each.result, kind) and name in (None, each.name):
                self.read.add(each.name)
                return each.result
        return None


def _span(estimate: Any) -> list[float | None]:
    """The smallest and the largest value over layers; null where nothing is known."""
    known = estimate.value[estimate.value.isfinite()]
    ends = (float(known.min()), float(known.max())) if known.numel() else (math.nan, math.nan)
    return [end if math.isfinite(end) else None for end in ends]
