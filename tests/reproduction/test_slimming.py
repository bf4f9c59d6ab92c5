"""Published tables lack what is declared and nothing else."""

from __future__ import annotations

import numpy as np
import pandas as pd

from skiplab.randomness import numpy_generator
from skiplab.reproduction.slimming import SLIM, rounded, slimmed

SEARCH = {"trial": "orhan2017/train-networks", "label": "cifar10, plain, search, 20 networks", "stage": 0}
DECIDING = SEARCH | {"label": "cifar10, plain, 20 networks"}
ONE, OTHER = (
    pd.DataFrame({"epoch": epochs, "quantity": pd.Categorical(words), "value": [0.1, 0.2, 0.3, 0.4]})
    for epochs, words in (([1, 1, 2, 2], list("abab")), ([0, 1, 2, 2], list("zabb")))
)


def test_of_searches_the_last_epoch_stays() -> None:
    kept = slimmed(ONE, SEARCH)
    assert kept["value"].tolist() == [0.3, 0.4]
    assert kept.index.tolist() == [0, 1]
    kept = slimmed(OTHER, SEARCH | {"label": "plain", "stage": "search"})
    assert kept["value"].tolist() == [0.1, 0.3, 0.4]
    assert kept["quantity"].cat.categories.tolist() == ["b", "z"]
    pd.testing.assert_frame_equal(slimmed(ONE, DECIDING), ONE)
    pd.testing.assert_frame_equal(slimmed(ONE, SEARCH | {"trial": "another/trial"}), ONE)


def test_slimming_twice_changes_nothing_more() -> None:
    once = slimmed(OTHER, SEARCH)
    pd.testing.assert_frame_equal(slimmed(once, SEARCH), once)


def test_drawn_values_have_single_precision_and_others_stay() -> None:
    name, how = next((name, how) for name, how in SLIM.items() if how.single)
    values = numpy_generator(0, "values").normal(size=4)
    table = pd.DataFrame({"quantity": [how.single[0], "read", how.single[0], "read"], "value": values})
    found = slimmed(table, {"trial": name, "label": "", "stage": "draw"})["value"]
    assert found[[1, 3]].tolist() == values[[1, 3]].tolist()
    assert found[[0, 2]].tolist() == values[[0, 2]].astype(np.float32).astype(float).tolist()
    assert table["value"].tolist() == values.tolist()


def test_rounding_keeps_the_range_of_double() -> None:
    values = pd.Series([1e-300, -1e300, np.nan, np.inf, 0.0, -0.0, 1 + 2**-30])
    found = rounded(values)
    np.testing.assert_allclose(found, values, rtol=2.0**-24)
    assert found.iloc[-1] == 1.0
    assert np.signbit(found.iloc[-2])
