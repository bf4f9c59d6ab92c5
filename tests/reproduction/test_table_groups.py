"""Many tables in one file come back bit for bit, shares as counts included."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skiplab.files import Damaged
from skiplab.randomness import numpy_generator
from skiplab.reproduction.table_groups import COUNTED, Group, group_bytes, schema_of
from skiplab.reproduction.tables import table_bytes


def networks(seed: int, images: int, kind: str = "float32") -> pd.DataFrame:
    """Accuracies and norms as trials leave them."""
    generator = numpy_generator(seed, "tables")
    accuracy = generator.integers(0, images + 1, size=2000) / images
    accuracy[:3] = np.nan, 0.0, 1.0
    norms = generator.normal(size=1000)
    norms[:4] = np.nan, -0.0, np.inf, 1e-42
    words = np.repeat(["accuracy", "norm"], [2000, 1000])
    return pd.DataFrame(
        {
            "epoch": np.arange(3000, dtype=np.int16),
            "quantity": pd.Categorical(words),
            "value": np.concatenate([accuracy, norms]).astype(kind),
            "data": pd.Categorical([f"set {seed}"] * 3000),
            "diverged": generator.random(3000) < 0.5,
        }
    )


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_tables_come_back_bit_for_bit_and_small(kind: str) -> None:
    tables = {f"{seed}": networks(seed, images, kind) for seed, images in enumerate((10_000, 50_000, 50_001))}
    whole = group_bytes(tables)
    assert group_bytes(tables) == whole
    found = Group(whole, "file")
    assert COUNTED in found.content.column_names
    for key, table in tables.items():
        again = found.table(key)
        pd.testing.assert_frame_equal(again, table, check_exact=True)
        assert again["value"].to_numpy().tobytes() == table["value"].to_numpy().tobytes()
    assert [images for _, _, images in found.places.values()][:2] == [10_000, 50_000]
    assert len(whole) < 0.8 * sum(len(table_bytes(table)) for table in tables.values())


def test_tables_without_shares_have_no_counts() -> None:
    table = pd.DataFrame({"seed": [1, 2], "quantity": ["x", "x"], "value": [0.1234567891, -1.0]})
    empty = table.iloc[:0]
    found = Group(group_bytes({"a": table, "b": empty}), "file")
    assert COUNTED not in found.content.column_names
    pd.testing.assert_frame_equal(found.table("a"), table, check_exact=True)
    assert len(found.table("b")) == 0
    assert schema_of(table) == schema_of(empty)


def test_what_is_no_group_is_damage() -> None:
    table = pd.DataFrame({"value": [1.0]})
    whole = group_bytes({"a": table})
    with pytest.raises(Damaged, match="file has no table of trial b"):
        Group(whole, "file").table("b")
    with pytest.raises(Damaged, match="file cannot be read as tables"):
        Group(whole[:-5], "file")
    with pytest.raises(Damaged, match="file cannot be read as tables"):
        Group(table_bytes(table), "file")
