"""Tables on disk: Parquet files, made as small as the format allows, since they ship with the package."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd


CATEGORIES = b"categories"


def write_table(table: pd.DataFrame, path: Path) -> None:
    """Write a table as small as Parquet makes it, with the same bytes for the same table.

    Numbers lie byte by byte (all first bytes, then all second ones, …), which takes a quarter less. Column
    statistics and Arrow's copy of the schema, 5 KB in a file of 20, are left out; of the latter only the names of
    categorical columns are needed.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = [name for name, kind in table.dtypes.items() if kind.kind == "f"]
    words = [name for name, kind in table.dtypes.items() if kind.name == "category"]
    content = pa.Table.from_pandas(table, preserve_index=False)
    with pq.ParquetWriter(
        path,
        content.schema,
        compression="zstd",
        compression_level=19,
        use_dictionary=[name for name in table.columns if name not in numbers],
        use_byte_stream_split=numbers,
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(content)
        writer.add_key_value_metadata({CATEGORIES: json.dumps(words)})


def read_table(path: Path) -> pd.DataFrame:
    """Read a table as it was written, be it by this or by an earlier version."""
    import pyarrow.parquet as pq

    table = pq.read_table(path).to_pandas()
    notes = pq.read_metadata(path).metadata or {}
    return table.astype(dict.fromkeys(json.loads(notes.get(CATEGORIES, "[]")), "category"))
