"""What published tables lack, as opposed to those that the trials made: the one place where it is declared.

A store's own tables stay whole. Of published ones no statistic, interval or verdict differs, which a slow test
checks (tests/contracts/test_published.py), and no line of a figure moves by a visible amount.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

SINGLE = 24  # significant bits of single precision


@dataclass(frozen=True)
class Slim:
    """How the tables of one trial are slimmed.

    ``last_epoch_of_search``: of runs that only choose a gain or a strength, the epochs before the last go. The seeds
    of searches are no other run's, so nothing else could ask for them.
    ``single``: values of these quantities are rounded to single precision. They are only drawn: with noise in their
    place, no stage named another trial and no verdict had another number.
    """

    last_epoch_of_search: bool = False
    single: tuple[str, ...] = ()


WHOLE = Slim()
SLIM: Mapping[str, Slim] = {
    "orhan2017/train-networks": Slim(last_epoch_of_search=True),
    "orhan2018/train-and-measure": Slim(last_epoch_of_search=True),
    "orhan2017/tau-matrices": Slim(single=("real", "imag")),
    "orhan2017/linear-descents": Slim(
        single=("loss", "a1 unit 1", "a1 unit 2", "a2 unit 1", "a2 unit 2"),
    ),
    "orhan2018/singular-layers": Slim(single=("eigenvalue", "loss")),
    "balduzzi2017/looks-linear-starts": Slim(single=("output", "slope")),
}


def slimmed(table: pd.DataFrame, named: Mapping[str, Any]) -> pd.DataFrame:
    """What is published of a trial's table; ``named`` is what the run remembers of the trial."""
    how = SLIM.get(named["trial"], WHOLE)
    if how.last_epoch_of_search and is_search(named):
        # An epoch of 0 marks what is not measured over training.
        table = table[table["epoch"].isin([0, table["epoch"].max()])].reset_index(drop=True)
        # Categories that no row has any more must go, as they do when a table is read.
        words = [name for name, kind in table.dtypes.items() if kind.name == "category"]
        table = table.assign(**{str(name): table[name].cat.remove_unused_categories() for name in words})
    if how.single:
        values = table["value"].where(~table["quantity"].isin(how.single), rounded(table["value"]))
        table = table.assign(value=values)
    return table


def is_search(named: Mapping[str, Any]) -> bool:
    """Whether a run remembers a trial as one that only chooses."""
    return named.get("stage") == "search" or "search" in named["label"]


def rounded(values: pd.Series) -> pd.Series:
    """Numbers rounded to the significant bits of single precision; the type and the range stay those of double."""
    import numpy as np

    parts, exponents = np.frexp(values.to_numpy())
    return values.astype(float).mask(
        values.notna(), np.ldexp(np.rint(parts * 2.0**SINGLE) / 2.0**SINGLE, exponents)
    )
