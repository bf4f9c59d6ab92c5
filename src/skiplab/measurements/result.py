"""What every measurement returns, in one shape: estimates with intervals, a table, a figure and a few lines of text.

A ``Result`` names its layers and its estimates (networks, layers); from these follow ``frame()``, ``plot()`` and what
a terminal or a notebook shows. Where units are measured, ``units()`` is a table of them. An open question, one whose
interval has no end, whose value is unknown or whose limits further work would narrow, is never shown as a point.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from skiplab.checks import require
from skiplab.measurements.estimate import ENDS, Estimate, over_networks

if TYPE_CHECKING:
    import pandas as pd

MATRICES = {"hessian": "Hessian", "gauss_newton": "Gauss–Newton", "fisher": "Fisher"}  # by ``kind``
Mark = tuple[str, "float | Sequence[float]", str]
MOST_ROWS = 20  # of the table that a notebook shows


class Result(ABC):
    """What a measurement found: subclasses are frozen dataclasses that give names, layers and estimates."""

    reference: ClassVar[str]  # where it is defined
    member: ClassVar[str] = "network"  # what the estimates' first axis counts, and the second
    place: ClassVar[str] = "layer"
    by_decades: ClassVar[bool] = False  # whether a figure's axis is logarithmic
    in_order: ClassVar[bool] = True  # whether a figure joins the places by a line
    on_axes: ClassVar[
        Mapping[str, str]
    ] = {}  # what a figure says of a quantity, where its name says too little

    @property
    @abstractmethod
    def title(self) -> str:
        """What was measured, as a figure has it above."""

    @property
    def places(self) -> tuple[str, ...]:
        """Names along the estimates' second axis: of the layers, unless a result counts something else."""
        names: tuple[str, ...] = self.layers  # type: ignore[attr-defined]
        return names

    @property
    @abstractmethod
    def estimates(self) -> Mapping[str, Estimate]:
        """Estimates (E, places) by quantity, the one that matters most first."""

    @property
    @abstractmethod
    def based_on(self) -> str:
        """What was measured on, in words: "128 samples"."""

    @property
    def yardstick(self) -> str:
        """A value to compare with, in words; empty where there is none."""
        return ""

    @property
    def marks(self) -> Sequence[Mark]:
        """Quantities with a value to compare them with, a dashed line in figures, and what has it, in words.

        The value is one for all places, or a list of one for each.
        """
        return ()

    @property
    def missing(self) -> str:
        """What is said of places without a value."""
        return "unknown"

    @property
    def remarks(self) -> Sequence[str]:
        """Further lines of the text: what sums the estimates up, or which blocks were found and what was left out."""
        lines = {"measured in": getattr(self, "found", ""), "left out:": getattr(self, "left_out", "")}
        return tuple(f"{words} {names}" for words, names in lines.items() if names)

    def frame(self) -> pd.DataFrame:
        """A table with one row per layer, of several networks per network and layer: each quantity, its low and high.

        What is exact has no low and high; what is partly unresolved says where it is resolved.
        """
        import pandas as pd

        networks, places = next(iter(self.estimates.values())).value.shape
        columns: dict[str, list[Any]] = {}
        if networks > 1:
            columns[self.member] = [network for network in range(networks) for _ in range(places)]
        if self.places != ("",):
            columns[self.place] = [*self.places] * networks
        for quantity, each in self.estimates.items():
            exact = bool(((each.low == each.high) | each.low.isnan()).all())
            ends = ("value",) if exact else ENDS
            for end in ends:
                name = quantity if end == "value" else f"{quantity}, {end}"
                columns[name] = getattr(each, end).flatten().tolist()
            if each.unresolved is not None and bool(each.unresolved.any()):
                columns[f"{quantity}, resolved"] = each.settled.flatten().tolist()
        return pd.DataFrame(columns)

    @property
    def by_unit(self) -> Mapping[str, Sequence[torch.Tensor]]:
        """Of a measurement that looks at units: tensors (E, units) by quantity, one per layer."""
        return {}

    def units(self) -> pd.DataFrame:
        """A table with one row per unit, of several networks per network and unit: its layer, number and quantities.

        Units of a layer are counted from 0. A measurement that looks at layers as a whole is refused.
        """
        import pandas as pd

        quantities = self.by_unit
        require(
            len(quantities) > 0,
            f"{type(self).__name__} has nothing per unit; .frame() has one row per {self.place}.",
        )
        parts = []
        for number, layer in enumerate(self.places):
            first = next(iter(quantities.values()))[number]
            networks, units = first.shape
            columns: dict[str, Any] = {}
            if networks > 1:
                columns[self.member] = [network for network in range(networks) for _ in range(units)]
            columns |= {self.place: layer, "unit": [*range(units)] * networks}
            columns |= {name: each[number].flatten().tolist() for name, each in quantities.items()}
            parts.append(pd.DataFrame(columns))
        table = pd.concat(parts, ignore_index=True)
        if self.member in table:
            table = table.sort_values(self.member, kind="stable", ignore_index=True)
        return table

    def plot(self) -> Any:
        """Draw every quantity of which something is known, a panel each, by layer where there are layers.

        Each network has a line of its own; of many it is their mean, with the interval of that.
        """
        from skiplab.measurements import result_plots  # here, since measuring needs no matplotlib

        draw = result_plots.by_network if self.places == ("",) else result_plots.by_place
        return draw(self)

    def __repr__(self) -> str:
        networks = len(next(iter(self.estimates.values())).value)
        lines = [f"{self.title} of {self._counted(networks)}, {self.based_on}"]
        for quantity, estimate in self.estimates.items():
            by_place = estimate[0] if networks == 1 else over_networks(estimate)
            lines.append(f"  {quantity}: {_range(by_place, self.places, self.place, self.missing)}")
        lines += [f"  {remark}" for remark in self.remarks]
        if self.yardstick:
            lines.append(f"  compare: {self.yardstick}")
        return "\n".join([*lines, f"  {self.reference}"])

    def _repr_html_(self) -> str:
        """The text, and the first rows of the table."""
        table = self.table_to_read()
        shown = table.head(MOST_ROWS).to_html(index=False, float_format=lambda number: f"{number:.4g}")
        more = f"<p>{len(table) - MOST_ROWS} further rows in .frame()</p>" if len(table) > MOST_ROWS else ""
        return f"<pre>{escape(repr(self))}</pre>{shown}{more}"

    def table_to_read(self) -> pd.DataFrame:
        """The table as a person reads it: an open question has its limits and no value."""
        table = self.frame()
        for quantity, each in self.estimates.items():
            settled = each.settled.flatten().tolist()
            words = ["" if value.isnan() else "unresolved" for value in each.value.flatten()]
            rows = zip(table[quantity], settled, words, strict=True)
            table[quantity] = [value if known else word for value, known, word in rows]
        return table.drop(columns=[f"{name}, resolved" for name in self.estimates], errors="ignore")

    def _counted(self, networks: int) -> str:
        """How many networks and layers there are; of a single network nothing is said."""
        counts = {self.member: networks, self.place: len(self.places)}
        if self.places == ("",):
            counts.pop(self.place)
        elif networks == 1:
            counts.pop(self.member)
        return ", ".join(number_of(count, word) for word, count in counts.items())


def number_of(count: int, word: str) -> str:
    """A count and what it counts: "1 sample", "2 batches", "3,072 numbers"."""
    ending = "" if count == 1 else "es" if word.endswith("ch") else "s"
    return f"{count:,} {word}{ending}"


def _range(by_place: Estimate, places: tuple[str, ...], kind: str, missing: str) -> str:
    """The smallest and the largest of the layers, or the one there is; the open ones by their limits."""
    known = by_place.settled.nonzero().flatten().tolist()
    if not known:
        known = (by_place.low.isfinite() & by_place.high.isfinite()).nonzero().flatten().tolist()
    if not known:
        few = bool(by_place.value.isfinite().any())
        return "unknown, too few samples or draws for an interval" if few else "unknown"
    middles = (by_place.low + by_place.high) / 2
    sizes = torch.where(by_place.value.isnan(), middles, by_place.value)
    # Of equal values the narrowest and the widest interval: they are the ends then.
    widths = (by_place.high - by_place.low).nan_to_num(0.0)
    order = list(zip(sizes.tolist(), widths.tolist(), strict=True))
    ends = dict.fromkeys(pick(known, key=order.__getitem__) for pick in (min, max))
    same = {str(by_place[place]) for place in known}
    if len(known) > 1 and len(same) == 1:
        all_ = "" if len(known) < len(places) else "all "
        many = "both" if all_ and len(known) == 2 else f"{all_}{len(known)}"
        words = [f"{same.pop()} in {many} {kind}s"]
    else:
        words = [f"{by_place[place]}{_where(places[place], kind)}" for place in ends]
    return " … ".join(words) + _rest(by_place, known, missing)


def _rest(by_place: Estimate, known: list[int], missing: str) -> str:
    """How many layers are not among the known, and what their limits are where they have some."""
    limited = by_place.low.isfinite() & by_place.high.isfinite()
    limited[known] = False
    open_ = int(limited.sum())
    words = ""
    if open_:
        hull = Estimate.between(by_place.low[limited].min(), by_place.high[limited].max())
        words = f"; {open_} unresolved ({str(hull).removesuffix(', unresolved')})"
    left = len(by_place.value) - len(known) - open_
    return words + (f"; {left} {missing}" if left else "")


def _where(place: str, kind: str) -> str:
    """In which layer; one whose name is a number is not taken for a number."""
    if not place:
        return ""
    return f" at {kind} {place}" if place.isdecimal() else f" in {place}"
