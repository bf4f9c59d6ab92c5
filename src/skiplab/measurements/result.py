"""What every measurement returns, in one shape: estimates with intervals, a table, a figure and a few lines of text.

An ``Estimate`` is a value and an interval that holds it. A ``Result`` names its layers and its estimates (networks,
layers); from these follow ``frame()``, ``plot()`` and what a terminal shows. An open question, one whose interval has
no end or whose value is unknown, is never shown as a point.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95
MOST_LINES = 8  # networks that a figure draws by themselves; of more, the mean and its interval


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values with 95 % intervals, tensors of one shape; where all three are equal the value is exact.

    NaN stands for what is not known: a diverged network's value, or the value of an open question, of which the
    interval may still say something.
    """

    value: Tensor
    low: Tensor
    high: Tensor

    @staticmethod
    def exact(value: Tensor) -> Estimate:
        """A value without error."""
        return Estimate(value, value, value)

    @staticmethod
    def mean(samples: Tensor, dim: int = -1) -> Estimate:
        """The mean along an axis with Student's interval, mean ± t·s/√n; of one sample the interval has no ends."""
        count, value = samples.shape[dim], samples.mean(dim)
        if count < 2:
            return Estimate(value, value - torch.inf, value + torch.inf)
        from scipy import stats

        half = float(stats.t.ppf(0.5 + LEVEL / 2, count - 1)) * samples.std(dim) / math.sqrt(count)
        return Estimate(value, value - half, value + half)

    @staticmethod
    def median(samples: Tensor, dim: int = -1) -> Estimate:
        """The median along an axis between two order statistics, which assumes nothing about the samples' law.

        Fewer than 6 samples have no two such order statistics: the interval has no ends.
        """
        from scipy import stats

        ordered, count = samples.sort(dim).values, samples.shape[dim]
        # torch's own median of an even number is the lower of the two in the middle.
        value = ordered.select(dim, (count - 1) // 2).lerp(ordered.select(dim, count // 2), 0.5)
        left_out = int(stats.binom.ppf((1 - LEVEL) / 2, count, 0.5))
        if left_out < 1:
            return Estimate(value, value - torch.inf, value + torch.inf)
        return Estimate(value, ordered.select(dim, left_out - 1), ordered.select(dim, count - left_out))

    @property
    def settled(self) -> Tensor:
        """Where there is a value and its interval has two ends."""
        return self.value.isfinite() & self.low.isfinite() & self.high.isfinite()

    def __getitem__(self, index: Any) -> Estimate:
        return Estimate(self.value[index], self.low[index], self.high[index])

    def __str__(self) -> str:
        if self.value.ndim:
            return f"{tuple(self.value.shape)} estimates"
        value, low, high = self.value.item(), self.low.item(), self.high.item()
        if not bool(self.settled):
            return "unknown" if math.isnan(low) or math.isinf(high - low) else f"{low:.3g} to {high:.3g}"
        return f"{value:.3g}" if low == high else f"{value:.3g} ({low:.3g} to {high:.3g})"

    __repr__ = __str__


class Result(ABC):
    """What a measurement found: subclasses are frozen dataclasses that give names, layers and estimates."""

    title: ClassVar[str]  # of the quantity, as a figure's axis has it
    reference: ClassVar[str]  # where it is defined
    layers: tuple[str, ...]

    @property
    @abstractmethod
    def estimates(self) -> Mapping[str, Estimate]:
        """Estimates (E, layers) by quantity, the one that matters most first."""

    @property
    @abstractmethod
    def based_on(self) -> str:
        """What was measured on, in words: "128 samples"."""

    @property
    def yardstick(self) -> str:
        """A value to compare with, in words; empty where there is none."""
        return ""

    def frame(self) -> pd.DataFrame:
        """A table with one row per network, layer and quantity: value, low, high."""
        import pandas as pd

        rows = []
        for quantity, estimate in self.estimates.items():
            columns = [part.tolist() for part in (estimate.value, estimate.low, estimate.high)]
            rows += [
                {
                    "network": network,
                    "layer": layer,
                    "quantity": quantity,
                    **{name: column[network][place] for name, column in zip(_ENDS, columns, strict=True)},
                }
                for network in range(len(estimate.value))
                for place, layer in enumerate(self.layers)
            ]
        return pd.DataFrame(rows)

    def plot(self) -> Any:
        """Draw the first quantity by layer: each network with its interval or, of many, their mean with its own."""
        from skiplab.figures.style import new_figure

        name, estimate = next(iter(self.estimates.items()))
        if len(estimate.value) > MOST_LINES:
            estimate = Estimate.mean(estimate.value, 0)[None]
        figure, axes = new_figure(width=4.8)
        places = range(1, len(self.layers) + 1)
        for each in zip(estimate.value, estimate.low, estimate.high, strict=True):
            value, low, high = (part.detach().double().cpu().numpy() for part in each)
            (line,) = axes[0, 0].plot(places, value, marker="o")
            axes[0, 0].fill_between(places, low, high, color=line.get_color(), alpha=0.18, linewidth=0)
        few = len(self.layers) <= 12
        axes[0, 0].set_xticks(places if few else places[:: len(self.layers) // 6])
        if few:
            axes[0, 0].set_xticklabels(self.layers, rotation=35, ha="right")
        axes[0, 0].set(xlabel="layer", ylabel=f"{self.title}, {name}")
        return figure

    def __repr__(self) -> str:
        first = next(iter(self.estimates.values()))
        networks = len(first.value)
        counts = {"network": networks, "layer": len(self.layers)}
        counted = ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items())
        lines = [f"{self.title} of {counted}, {self.based_on}"]
        for quantity, estimate in self.estimates.items():
            # Over networks, whose spread is what a further network would differ by.
            by_layer = estimate[0] if networks == 1 else Estimate.mean(estimate.value, 0)
            lines.append(f"  {quantity}: {_range(by_layer, self.layers)}")
        if self.yardstick:
            lines.append(f"  compare: {self.yardstick}")
        return "\n".join([*lines, f"  {self.reference}"])


_ENDS = ("value", "low", "high")


def _range(by_layer: Estimate, layers: tuple[str, ...]) -> str:
    """The smallest and the largest of the layers, or the one there is."""
    known = by_layer.value.isfinite().nonzero().flatten().tolist()
    if not known:
        return "unknown"
    ends = [pick(known, key=lambda place: float(by_layer.value[place])) for pick in (min, max)]
    words = [f"{by_layer[place]} in {layers[place]}" for place in dict.fromkeys(ends)]
    return " … ".join(words)
