"""Many tables in one Parquet file: what the trials of one name left, one table after the other.

A file of its own takes 1–3 KB of headers per trial, and columns that hardly differ between trials compress once
instead of each time. Notes in the file say how many rows each table has. Every table comes back bit for bit, which is
checked when it is written. Two things make it small, and both lose nothing:

    shares       accuracies are shares of 10,000 or 50,000 images. Rows of such quantities lie in a column of counts,
                 at half the size; the column ``value`` has nothing there.
    encodings    of each column of numbers, bytes apart (all first bytes, then all second ones, …) or a dictionary,
                 whichever is smaller.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skiplab.files import Damaged
from skiplab.reproduction.tables import CATEGORIES, parquet_bytes

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa

NOTES = b"tables"
COUNTED = "value, counted"
IMAGES = (10_000, 50_000, 100_000)  # the last for means of two sets
# Added to a count, the bytes of a float32 are those of the whole number. Readers of whole numbers with bytes apart
# came with pyarrow 16.
SHIFT = 2**23


def schema_of(table: pd.DataFrame) -> tuple[tuple[str, str], ...]:
    """What tables in one file must have in common: their columns and types, in order."""
    return tuple((str(name), str(kind)) for name, kind in table.dtypes.items())


def group_bytes(tables: Mapping[str, pd.DataFrame]) -> bytes:
    """Make one file of tables of the same schema, by key; the same bytes for the same tables."""
    import pyarrow as pa

    first = next(iter(tables.values()))
    parts, images = [], []
    for table in tables.values():
        counts, of = _counted(table)
        images.append(of)
        parts.append(_content(table, counts))
    content = pa.concat_tables(parts)
    if not any(images):
        content = content.drop_columns([COUNTED])
    words = [str(name) for name, kind in first.dtypes.items() if kind.name == "category"]
    notes = {"keys": list(tables), "rows": [len(table) for table in tables.values()], "images": images}
    whole = _smallest(content, {CATEGORIES: json.dumps(words), NOTES: json.dumps(notes)})
    made = Group(whole, "what was just made")
    changed = [key for key, table in tables.items() if not made.table(key).equals(table)]
    if changed:
        raise ValueError(f"the table of trial {changed[0]} does not come back from Parquet as it was.")
    return whole


def _counted(table: pd.DataFrame) -> tuple[np.ndarray | None, int]:
    """The counts behind those quantities of a table that are shares (NaN elsewhere), and of how many images."""
    import numpy as np
    import pandas as pd

    if "quantity" not in table or "value" not in table or table["value"].dtype.kind != "f":
        return None, 0
    values = table["value"].to_numpy()
    best, found, of = 0, None, 0
    for images in IMAGES:
        with np.errstate(over="ignore", invalid="ignore"):
            counts = np.rint(values.astype(float) * images)
            exact = (counts / images).astype(values.dtype) == values
            exact &= (counts < SHIFT) & ~np.signbit(values)
        exact |= np.isnan(values)
        whole = pd.Series(exact).groupby(table["quantity"].astype(str).to_numpy()).transform("all").to_numpy()
        if whole.sum() > best:
            best, found, of = whole.sum(), np.where(whole, counts, np.nan), images
    return found, of


def _content(table: pd.DataFrame, counts: np.ndarray | None) -> pa.Table:
    """A table as Arrow has it, words as words, with its counts in a column of their own."""
    import numpy as np
    import pyarrow as pa

    content = pa.Table.from_pandas(table, preserve_index=False).replace_schema_metadata()
    for place, column in enumerate(content.columns):
        if pa.types.is_dictionary(column.type):
            content = content.set_column(
                place, content.column_names[place], column.cast(column.type.value_type)
            )
    if counts is None:
        return content.append_column(COUNTED, pa.nulls(len(content), pa.float32()))
    values = pa.array(table["value"].to_numpy(), mask=np.isfinite(counts), from_pandas=True)
    content = content.set_column(content.column_names.index("value"), "value", values)
    return content.append_column(COUNTED, pa.array((counts + SHIFT).astype(np.float32), from_pandas=True))


def _smallest(content: pa.Table, notes: Mapping[bytes, str]) -> bytes:
    """Write a table with the better of two encodings for each column of numbers."""
    import pyarrow as pa

    numbers = [field.name for field in content.schema if pa.types.is_floating(field.type)]
    split = []
    for name in numbers:
        apart, listed = (len(parquet_bytes(content.select([name]), ways, {})) for ways in ([name], []))
        if apart <= listed:
            split.append(name)
    return parquet_bytes(content, split, notes)


class Group:
    """The tables of one such file."""

    def __init__(self, whole: bytes, where: str) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self.where = where
        try:
            file = pq.ParquetFile(pa.BufferReader(whole))
            self.content = file.read()
            notes: dict[str, Any] = json.loads(file.metadata.metadata[NOTES])
            self.words: list[str] = json.loads(file.metadata.metadata[CATEGORIES])
            self.places: dict[str, tuple[int, int, int]] = {}
            start = 0
            for key, rows, images in zip(notes["keys"], notes["rows"], notes["images"], strict=True):
                self.places[key] = (start, rows, images)
                start += rows
        except Exception as error:  # pyarrow raises almost anything on a damaged file
            raise Damaged(f"{where} cannot be read as tables ({type(error).__name__})") from error

    def table(self, key: str) -> pd.DataFrame:
        """The table of one trial, as it was written."""
        import numpy as np

        if key not in self.places:
            raise Damaged(f"{self.where} has no table of trial {key}")
        start, rows, images = self.places[key]
        table = self.content.slice(start, rows).replace_schema_metadata().to_pandas()
        if COUNTED in table:
            counts = table.pop(COUNTED).to_numpy(dtype=float) - SHIFT
            values = table["value"].to_numpy()
            if images:
                table["value"] = np.where(np.isnan(counts), values, (counts / images).astype(values.dtype))
        return table.astype(dict.fromkeys(self.words, "category"))
