"""Whatever an instrument is called with, it answers or says in one sentence what is wrong and what to do.

A few dozen odd calls per instrument by default, ``SKIPLAB_CASES`` (1,000) in the slow suite. Errors that a user's own
function raises inside itself pass through.
"""

from __future__ import annotations

import os
import re
import traceback
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("hypothesis", reason="hypothesis is among the packages for development")

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from odd_calls import ODD_VALUES, OddCall, X, odd_calls, tensors

import skiplab
import skiplab.interface as sl
from skiplab.checks import SkiplabError

# torch warns of complex modules, sparse tensors, losses that broadcast; here that is nobody's concern.
pytestmark = pytest.mark.filterwarnings("ignore")
CASES = int(os.environ.get("SKIPLAB_CASES", "1000"))
few = settings(
    max_examples=20, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
)
many = settings(few, max_examples=CASES)
few_and_many = pytest.mark.parametrize(
    "cases", [pytest.param(few, id="few"), pytest.param(many, id="many", marks=pytest.mark.slow)]
)

NOT_OF_NETWORKS = {"Ensemble", "Exact", "Lanczos", "Moments", "Subject", "autocorrelation", "results", "run"}
NOT_OF_NETWORKS |= {
    "compare",
    "remedies",
    "Recorder",
    "LightningCallback",
    "TrainerCallback",
}  # tests/diagnosis
# What would take long otherwise; an odd call may ask for other things.
SMALL = {
    "diagnose": {"examinations": ["layer_signals", "gradient_norms"], "budget": 5},
    "try_remedies": {"remedies": ["gain"], "steps": 2, "seeds": 2, "rate": 0.01},
}
INSTRUMENTS = sorted(set(skiplab.__all__) - NOT_OF_NETWORKS)


def measured(name: str, call: OddCall) -> Any:
    """What the instrument answers, written out and as a table, as a user would look at it."""
    instrument = getattr(sl, name)
    if name == "looks_linear":  # which takes no batch
        return instrument(call.target, **call.keywords)
    found = instrument(call.target, call.batch, **(SMALL.get(name, {}) | call.keywords))
    if name == "HessianProduct":
        return found(torch.ones(found.size, 1, found.dimension))
    repr(found)
    return found.frame() if hasattr(found, "frame") else found


def check_sentence(problem: SkiplabError) -> None:
    """One sentence for a person: no line breaks or codes, what is wrong, and what to do or to choose from."""
    text = str(problem)
    assert text.isprintable(), text
    assert text.endswith((".", "?")), text
    assert len(text) > 30, text
    assert re.search(r"[;,:?(]| so | at least ", text), text


def is_the_users(problem: Exception, call: OddCall) -> bool:
    """Whether it was raised inside a loss function of the user's own."""
    inside = any("odd_calls" in each.filename for each in traceback.extract_tb(problem.__traceback__))
    return inside and "loss_fn" in call.names


def checked(act: Callable[[], Any], call: OddCall) -> None:
    try:
        act()
    except SkiplabError as problem:
        check_sentence(problem)
    except Exception as problem:
        if not is_the_users(problem, call):
            raise AssertionError(f"{call.names} {call.keywords}") from problem


@few_and_many
@pytest.mark.parametrize("name", INSTRUMENTS)
def test_no_call_of_an_instrument_ends_in_a_traceback(name: str, cases: Any) -> None:
    @cases
    @given(call=odd_calls(getattr(sl, name)))
    def holds(call: OddCall) -> None:
        checked(lambda: measured(name, call), call)

    holds()


@few_and_many
def test_no_series_ends_in_a_traceback(cases: Any) -> None:
    series = (
        tensors(X) | st.sampled_from(ODD_VALUES) | st.lists(st.floats() | st.text(max_size=2), max_size=9)
    )

    @cases
    @given(series=series, lags=st.integers(-2, 9) | st.sampled_from(ODD_VALUES))
    def holds(series: Any, lags: Any) -> None:
        checked(lambda: repr(sl.autocorrelation(series, lags)), OddCall(series, lags))

    holds()
