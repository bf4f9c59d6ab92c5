"""Long tables of trained networks: one row per network, epoch and quantity, with what is known of the network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

WORDS = ("network_id", "data", "model", "skip", "quantity")  # repeated in most rows, so kept as categories


def long_table(rows: Sequence[Mapping[str, Any]], networks: Mapping[str, Any], **types: str) -> pd.DataFrame:
    """Rows that name a ``member``, each beside what ``networks`` says of it, in columns of the types given.

    ``networks`` has a value per column: one for all members, or one per member in their order.

    >>> rows = [{"member": 0, "epoch": 1, "value": 0.5}, {"member": 1, "epoch": 1, "value": 0.25}]
    >>> long_table(rows, {"model": "plain", "seed": (3, 4)}, epoch="int16").to_dict("list")
    {'epoch': [1, 1], 'value': [0.5, 0.25], 'model': ['plain', 'plain'], 'seed': [3, 4]}
    """
    import pandas as pd

    members = pd.DataFrame(networks).rename_axis("member").reset_index()
    frame = pd.DataFrame(rows).merge(members, on="member").drop(columns="member")
    words = [word for word in WORDS if word in frame]
    return frame.astype(dict.fromkeys(words, "category") | types)
