"""Tables on disk: Parquet files, made as small as the format allows, since they ship with the package."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from skiplab.files import Damaged, read_bytes, write_bytes

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


CATEGORIES = b"categories"
PAGE = 2**26  # bytes, above any column of ours
SMALLEST = 19  # zstd's level for what ships
QUICK = 9  # for the report: 4 % larger than at 19 in a fifth of the time, for all that is published


def write_table(table: pd.DataFrame, path: Path, *, level: int = SMALLEST) -> str:
    """Write a table and return the SHA-256 by which ``read_table`` knows it again."""
    content = table_bytes(table, level=level)
    write_bytes(path, content)
    return hashlib.sha256(content).hexdigest()


def table_bytes(table: pd.DataFrame, *, level: int = SMALLEST) -> bytes:
    """Make a file of a table, by default as small as Parquet makes it, with the same bytes for the same table.

    Numbers lie byte by byte (all first bytes, then all second ones, …), which takes a quarter less. Column
    statistics and Arrow's copy of the schema, 5 KB in a file of 20, are left out; of the latter only the names of
    categorical columns are needed.
    """
    import pyarrow as pa

    numbers = [str(name) for name, kind in table.dtypes.items() if kind.kind == "f"]
    words = [name for name, kind in table.dtypes.items() if kind.name == "category"]
    content = pa.Table.from_pandas(table, preserve_index=False)
    return parquet_bytes(content, numbers, {CATEGORIES: json.dumps(words)}, level=level)


def parquet_bytes(
    content: pa.Table, split: Sequence[str], notes: Mapping[bytes, str], *, level: int = SMALLEST
) -> bytes:
    """Make a Parquet file with the bytes of some columns apart and dictionaries for the others."""
    import pyarrow.parquet as pq

    file = io.BytesIO()
    with pq.ParquetWriter(
        file,
        content.schema,
        compression="zstd",
        compression_level=level,
        use_dictionary=[name for name in content.column_names if name not in split],
        use_byte_stream_split=list(split),
        write_statistics=False,
        store_schema=False,
        # A dictionary or page that is cut into pieces compresses less.
        dictionary_pagesize_limit=PAGE,
        data_page_size=PAGE,
    ) as writer:
        writer.write_table(content)
        writer.add_key_value_metadata(dict(notes))
    return file.getvalue()


def read_table(path: Path, sha256: str | None = None) -> pd.DataFrame:
    """Read a table as it was written, be it by this or by an earlier version; raise Damaged where it is not.

    ``sha256`` is what ``write_table`` returned; tables of earlier versions come without it.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = read_bytes(path, sha256)
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        notes = file.metadata.metadata or {}
        table = file.read().to_pandas()
        return table.astype(dict.fromkeys(json.loads(notes.get(CATEGORIES, "[]")), "category"))
    except Exception as error:  # pyarrow raises almost anything on a damaged file
        raise Damaged(f"{path} cannot be read as a table ({type(error).__name__})") from error
