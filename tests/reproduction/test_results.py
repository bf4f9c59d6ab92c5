"""Results: every row knows its trial and stage, and is found by the values of its columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from counted_studies import draw

from skiplab.checks import Refused
from skiplab.reproduction.results import Part, Results, matching, sample_of


def table(seeds: list[int], model: str, shift: float = 0.0) -> pd.DataFrame:
    frame = pd.DataFrame({"seed": seeds, "model": model, "value": [seed + shift for seed in seeds]})
    return frame.astype({"model": "category"})


RESULTS = Results(
    "settings",
    [
        Part("lab/train", "search", table([500, 501], "plain")),
        Part("lab/train", "decide", table([1, 0], "plain", 0.5)),
        Part("lab/train", "decide", table([0, 1], "residual", 0.25)),
        Part(draw.name, "decide", pd.DataFrame({"seed": [7], "value": [9.0]})),
    ],
)


def test_all_rows_come_in_order_with_their_trial_and_stage() -> None:
    frame = RESULTS.frame
    assert frame["value"].tolist() == [500, 501, 1.5, 0.5, 0.25, 1.25, 9.0]
    assert frame["trial"].tolist() == ["lab/train"] * 6 + [draw.name]
    assert frame["stage"].tolist() == ["search"] * 2 + ["decide"] * 5
    assert RESULTS.frame is frame


def test_rows_are_chosen_by_trial_stage_and_values() -> None:
    assert RESULTS.rows("lab/train", stage="decide", model="plain")["seed"].tolist() == [1, 0]
    assert RESULTS.rows(draw)["value"].tolist() == [9.0]
    assert len(RESULTS.rows(stage=("search", "decide"))) == 7
    assert RESULTS.rows(model=["plain", "residual"], seed=range(2))["seed"].tolist() == [1, 0, 0, 1]
    assert RESULTS.rows("lab/train", stage="decide", model="plain", seed=5).empty


def test_a_sample_is_in_the_order_of_seeds() -> None:
    np.testing.assert_array_equal(RESULTS.sample("lab/train", stage="decide", model="plain"), [0.5, 1.5])
    np.testing.assert_array_equal(RESULTS.sample(stage="nowhere"), [])
    several = pd.DataFrame({"run": [1, 0, 0], "layer": [0, 1, 0], "depth": [3.0, 2.0, 1.0]})
    np.testing.assert_array_equal(sample_of(several, by=["run", "layer"], value="depth"), [1.0, 2.0, 3.0])


def test_a_column_that_no_row_has_is_refused() -> None:
    with pytest.raises(Refused, match=r"no row has a 'modle'; there are .*Did you mean model"):
        RESULTS.rows("lab/train", modle="plain")


def test_where_there_is_nothing_nothing_is_found() -> None:
    empty = Results(None)
    assert empty.frame.empty
    assert empty.rows(stage="decide", model="plain").empty
    assert matching(pd.DataFrame(), anything=1).empty


def test_a_further_stage_leaves_the_first_results_as_they_were() -> None:
    more = RESULTS.and_then([Part("lab/train", "last", table([3], "plain"))])
    assert len(more.frame) == 8
    assert len(RESULTS.frame) == 7
    assert more.settings == "settings"
