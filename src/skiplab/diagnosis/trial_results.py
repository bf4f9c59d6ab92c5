"""What trying remedies found: who trains how far in the same steps, against the network as it is."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from skiplab.checks import one_of
from skiplab.diagnosis.comparison.drawing import in_bins
from skiplab.diagnosis.comparison.judging import Difference, differences, mean_in_words, mean_interval
from skiplab.diagnosis.rates import ChosenRate
from skiplab.diagnosis.side_by_side import last_tenth
from skiplab.remedies.treated import Treated
from skiplab.reporting import words

if TYPE_CHECKING:
    import pandas as pd

UNTREATED = "untreated"
LOSS = "final loss"
WIDTH = 116


@dataclass(frozen=True, eq=False)
class Contender:
    """The network as it is, or after a remedy: losses and accuracies (seeds, steps), and which runs diverged."""

    id: str
    changed: str
    rate: ChosenRate
    loss: np.ndarray
    accuracy: np.ndarray
    diverged: np.ndarray

    @property
    def finals(self) -> np.ndarray:
        """The mean loss over the last tenth of the steps, (seeds,); NaN where a run diverged."""
        return np.asarray(last_tenth(self.loss).mean(1))

    @property
    def rank(self) -> float:
        """What candidates are ranked by: the mean final loss, infinite where a run diverged."""
        return math.inf if self.diverged.any() else float(self.finals.mean())


@dataclass(frozen=True, eq=False, repr=False)
class RemedyTrials:
    """Candidates by rank, the untreated network among them; remedies that cannot be applied are in ``refused``."""

    model: str
    candidates: tuple[Contender, ...]
    refused: Mapping[str, str]
    seeds: tuple[int, ...]
    steps: int
    trained_on: str
    loss: str
    searched: int
    notes: tuple[str, ...] = ()
    stopped: bool = False  # by Ctrl-C, before all remedies were tried
    copies: Mapping[str, Treated] = field(default_factory=dict)

    def __getitem__(self, remedy: str) -> Contender:
        """A candidate by its id."""
        every = {each.id: each for each in self.candidates}
        return every[one_of("remedy", remedy, every)]

    @cached_property
    def differences(self) -> Mapping[str, Difference]:
        """Each remedy's final loss minus the untreated one's, paired by seed; Holm's procedure over the remedies."""
        samples = {each.id: each.finals for each in self.candidates}
        found = differences(LOSS, samples, lower_is_better=True, against=UNTREATED)
        return {each.first: each for each in found}

    @property
    def best(self) -> str | None:
        """The remedy with the lowest mean loss among those that are better than no treatment; None if none is."""
        better = [each.id for each in self.candidates if each.id in self.improving]
        return better[0] if better else None

    @property
    def improving(self) -> tuple[str, ...]:
        """The remedies that are better than no treatment by the test, by rank."""
        shown = self.differences
        return tuple(
            each.id for each in self.candidates if each.id in shown and shown[each.id].better == each.id
        )

    def treated(self, remedy: str) -> Treated:
        """The changed copy before training, with what was changed in words and the penalty, if there is one."""
        found = self.copies[one_of("remedy", remedy, self.copies)]
        return Treated(copy.deepcopy(found.model), found.changed, found.penalty)

    def frame(self) -> pd.DataFrame:
        """A table with one row per candidate and seed, by rank."""
        import pandas as pd

        rows = []
        for each in self.candidates:
            accuracies = last_tenth(each.accuracy).mean(1)
            for place, seed in enumerate(self.seeds):
                rows.append(
                    {
                        "remedy": each.id,
                        "seed": seed,
                        "rate": each.rate.rate,
                        LOSS: each.finals[place],
                        "final accuracy": accuracies[place],
                        "diverged": bool(each.diverged[place]),
                    }
                )
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """All that the text says, as plain numbers; None stands for what is unknown."""
        return {
            "model": self.model,
            "seeds": len(self.seeds),
            "steps": self.steps,
            "best": self.best,
            "candidates": [
                {
                    "id": each.id,
                    "changed": each.changed,
                    "rate": each.rate.rate,
                    "rate_at_edge": each.rate.at_edge,
                    "final_loss": _ends(*mean_interval(each.finals)),
                    "minus_untreated": self._difference_in_numbers(each.id),
                    "diverged": int(each.diverged.sum()),
                }
                for each in self.candidates
            ],
            "refused": [{"id": name, "why": why} for name, why in self.refused.items()],
            "notes": list(self.notes),
        }

    def plot(self) -> Any:
        """Draw the loss over training, mean and interval over seeds, one colour per candidate."""
        from skiplab.figures.colours import distinct
        from skiplab.figures.curves import learning_curves
        from skiplab.figures.style import new_figure

        figure, axes = new_figure(width=5.6, height=3.2)
        steps, curves = in_bins({each.id: each.loss for each in self.candidates})
        colours = {UNTREATED: "#222222"} | distinct(name for name in curves if name != UNTREATED)
        learning_curves(axes[0, 0], steps, curves, labels="direct", colours=colours)
        axes[0, 0].set(title=f"Remedies tried on {self.model}", xlabel="step", ylabel="loss")
        return figure

    def __repr__(self) -> str:
        length = f"{words.count(len(self.seeds), 'seed')}, {words.count(self.steps, 'step')} of Adam"
        lines = [
            f"Remedies tried on {self.model}: {length} on {self.trained_on}",
            *_aligned([("", LOSS, "minus untreated", "rate"), *map(self._row, self.candidates)]),
        ]
        told = [f"best: {self.best}" if self.best else "no remedy is shown to be better than no treatment"]
        told += [f"{each.id}: {each.changed}" for each in self.candidates if each.id != UNTREATED]
        edges = [each.id for each in self.candidates if each.rate.at_edge]
        if edges:
            told.append(
                f"the best rate is at the edge of those tried, so a better one may lie beyond: {', '.join(edges)}"
            )
        told += [f"refused: {name}: {why}" for name, why in self.refused.items()]
        runs = len(self.candidates) * len(self.seeds)
        told.append(f"cost: {runs + self.searched} networks trained, {self.searched} of them to choose rates")
        told += [self.loss, *self.notes]
        for text in told:
            lines += wrap(f"  {text}", WIDTH, subsequent_indent="    ")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        cells = ["".join(f"<td>{escape(cell)}</td>" for cell in self._row(each)) for each in self.candidates]
        head = "".join(f"<th>{each}</th>" for each in ("candidate", LOSS, "minus untreated", "rate"))
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        lines = repr(self).splitlines()
        rest = "\n".join(lines[len(self.candidates) + 2 :])
        return f"<p>{escape(lines[0])}</p><table><tr>{head}</tr>{body}</table><pre>{escape(rest)}</pre>"

    def _row(self, each: Contender) -> tuple[str, ...]:
        """Id, final loss, difference with a star where it is shown, rate."""
        lost = int(each.diverged.sum())
        loss = mean_in_words(each.finals) if lost < len(self.seeds) else "–"
        if lost:
            loss += f", {lost} of {len(self.seeds)} diverged"
        shown = self.differences.get(each.id)
        if shown is None:
            return each.id, loss, "", f"{each.rate.rate:g}"
        verdict = shown.verdict if not shown.better else ("better" if shown.better == each.id else "worse")
        return each.id, loss, f"{shown.interval}; {verdict}", f"{each.rate.rate:g}"

    def _difference_in_numbers(self, remedy: str) -> dict[str, float | None] | None:
        shown = self.differences.get(remedy)
        if shown is None:
            return None
        return _ends(shown.value, shown.low, shown.high) | {"p": None if math.isnan(shown.p) else shown.p}


def _ends(mean: float, low: float, high: float) -> dict[str, float | None]:
    named = {"mean": mean, "low": low, "high": high}
    return {name: value if math.isfinite(value) else None for name, value in named.items()}


def _aligned(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return [
        "  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
