"""Tables come back from disk as they were, small and with the same bytes each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from skiplab.reproduction.tables import QUICK, read_table, write_table

TABLE = pd.DataFrame(
    {
        "model": pd.Categorical(["plain", "residual", "plain"]),
        "name": ["b", "a", "b"],
        "layer": np.array([1, 2, 3], dtype="int16"),
        "seed": [1, 2, 3],
        "value": np.array([0.1, np.nan, -np.inf], dtype="float32"),
        "precise": [0.1, 1e-300, np.pi],
        "diverged": [True, False, True],
    }
)


def test_a_table_comes_back_with_its_types(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "table.parquet")
    pd.testing.assert_frame_equal(read_table(tmp_path / "table.parquet"), TABLE)


def test_the_same_table_has_the_same_bytes(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "a")
    write_table(TABLE.copy(), tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_table_written_in_haste_is_the_same_and_hardly_larger(tmp_path: Path) -> None:
    many = pd.concat([TABLE] * 1000, ignore_index=True)
    many["model"] = many["model"].astype("category")
    write_table(many, tmp_path / "small")
    write_table(many, tmp_path / "quick", level=QUICK)
    pd.testing.assert_frame_equal(read_table(tmp_path / "quick"), many)
    small, quick = ((tmp_path / name).stat().st_size for name in ("small", "quick"))
    assert small <= quick < 1.2 * small


def test_tables_of_earlier_versions_are_read_too(tmp_path: Path) -> None:
    TABLE.to_parquet(tmp_path / "old.parquet", index=False)
    pd.testing.assert_frame_equal(read_table(tmp_path / "old.parquet"), TABLE)


def test_what_parquet_repeats_is_left_out(tmp_path: Path) -> None:
    write_table(TABLE, tmp_path / "table.parquet")
    TABLE.to_parquet(tmp_path / "plain.parquet", index=False)
    assert (tmp_path / "table.parquet").stat().st_size < 0.8 * (tmp_path / "plain.parquet").stat().st_size
    assert b"ARROW:schema" not in (pq.read_metadata(tmp_path / "table.parquet").metadata or {})
