"""What a report writes as JSON is what its schema says, and its schema is strict."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import re
from typing import Any

import pytest

from oracles.json_schemas import faults
from oracles.json_shapes import mismatches, shapes
from oracles.made_up_reports import VANISHING, report
from skiplab.diagnosis.schema import SCHEMA

FOUND = report()


def test_a_report_is_as_its_schema_says() -> None:
    written = json.loads(json.dumps(FOUND.to_dict(), allow_nan=False))
    assert faults(SCHEMA, written) == []
    assert [each["id"] for each in written["findings"]] == [
        "vanishing-gradients",
        "dead-units",
        "shallow-paths",
    ]
    assert written["findings"][0]["where"] == ["a", "b"]
    assert written["unmeasured"] == [
        {"what": "path_depth", "question": "how deep paths are", "why": "the network has no residual branch"}
    ]


def test_numbers_that_are_not_finite_are_null() -> None:
    odd = dataclasses.replace(VANISHING, statistic=math.inf, low=-math.inf, usual=(0.1, math.inf))
    written = dataclasses.replace(FOUND, findings=(odd,)).to_dict()
    assert faults(SCHEMA, written) == []
    found = json.loads(json.dumps(written, allow_nan=False))["findings"][0]
    assert {name: found[name] for name in ("statistic", "low", "high", "usual_low", "usual_high")} == {
        "statistic": None,
        "low": None,
        "high": 1.2e-3,
        "usual_low": 0.1,
        "usual_high": None,
    }


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (("findings", 0, "severity"), "bad", r"\$.findings\[0\].severity is 'bad', against"),
        (("findings", 0, "statistic"), "1", r"\$.findings\[0\].statistic is '1', not number or null"),
        (("findings", 0, "statistic"), math.nan, "is nan, not number or null"),
        (("findings", 0, "where"), "a", r"where is 'a', not array"),
        (("findings", 0, "more"), 1, r"\$.findings\[0\] has more"),
        (("findings", 0, "id"), "Dead Layer", "against"),
        (("measured", 0, "quantities"), {"norm": [1.0]}, "norm is .1.0., against 2"),
        (("unmeasured", 0, "why"), None, "why is None, not string"),
        (("parameters",), True, "parameters is True, not integer"),
        (("seconds",), -1, "seconds is -1, against 0"),
        (("schema",), 2, "schema is 2, against 1"),
    ],
)
def test_what_is_not_of_the_schema_is_told(place: tuple[Any, ...], value: Any, words: str) -> None:
    written = copy.deepcopy(FOUND.to_dict())
    inside = written
    for name in place[:-1]:
        inside = inside[name]
    inside[place[-1]] = value
    found = faults(SCHEMA, written)
    assert len(found) == 1
    assert re.search(words, found[0])


def test_no_name_may_be_left_out() -> None:
    for part in ("findings", "measured", "unmeasured"):
        for name in FOUND.to_dict()[part][0]:
            written = copy.deepcopy(FOUND.to_dict())
            del written[part][0][name]
            assert faults(SCHEMA, written) == [f"$.{part}[0] lacks {name}"]


def test_the_shape_in_the_documentation_is_the_schema_s() -> None:
    known = shapes()
    assert mismatches(known["diagnose"], FOUND.to_dict(), known) == []
    shape = known["diagnose"]
    assert list(shape) == SCHEMA["required"]
    for part in ("findings", "measured", "unmeasured"):
        assert list(shape[part][0]) == SCHEMA["properties"][part]["items"]["required"]
