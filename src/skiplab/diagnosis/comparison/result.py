"""What a comparison found: per model the final losses and accuracies, the pairs judged, and what was measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from skiplab.checks import one_of
from skiplab.diagnosis.comparison.judging import Difference, differences, mean_in_words, mean_interval
from skiplab.diagnosis.comparison.measuring import ModelMeasure, NotMeasured
from skiplab.diagnosis.rates import ChosenRate
from skiplab.diagnosis.side_by_side import last_tenth
from skiplab.reporting import words
from skiplab.reproduction.statistics import share_interval

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 116
LOSS, ACCURACY, TEST_LOSS, TEST = "final loss", "final accuracy", "test loss", "test accuracy"
QUANTITIES = (LOSS, ACCURACY, TEST_LOSS, TEST)
ENDS = ("mean", "low", "high")
ANYWHERE = (-np.inf, np.inf)
BOUNDS = {ACCURACY: (0.0, 1.0), TEST: (0.0, 1.0)}
MOST_ROWS = 20  # of the table that a notebook shows


@dataclass(frozen=True, eq=False)
class ModelRuns:
    """The networks of one model: losses and accuracies (seeds, steps) while they train, and on the test samples."""

    name: str
    rate: ChosenRate
    parameters: int
    loss: np.ndarray
    accuracy: np.ndarray
    diverged: np.ndarray
    test_loss: np.ndarray
    test_accuracy: np.ndarray
    together: bool

    @cached_property
    def finals(self) -> Mapping[str, np.ndarray]:
        """Each network's mean over the last tenth of the steps, and what it is on the test samples; (seeds,) each."""
        every = {
            LOSS: last_tenth(self.loss).mean(1),
            ACCURACY: last_tenth(self.accuracy).mean(1),
            TEST_LOSS: self.test_loss,
            TEST: self.test_accuracy,
        }
        return {name: values for name, values in every.items() if name == LOSS or np.isfinite(values).any()}

    def never_learn(self, chance: float) -> np.ndarray:
        """Which networks ended where they began: at chance, or without classes at the loss of the first tenth.

        At chance is below 1.5 times the share of the most frequent class; of few classes, nearer to it than an
        eighteenth of the way to 1, which is the same for ten.
        """
        if np.isfinite(chance):
            threshold = min(1.5 * chance, chance + (1 - chance) / 18)
            return np.asarray(self.finals[ACCURACY] < threshold) if ACCURACY in self.finals else self.diverged
        first = last_tenth(self.loss[:, ::-1]).mean(1)
        return np.asarray(self.finals[LOSS] >= first)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Models trained on the same batches: ``runs`` by model, ``differences`` by pair, ``measures`` by instrument."""

    runs: tuple[ModelRuns, ...]
    seeds: tuple[int, ...]
    steps: int
    trained_on: str
    loss: str
    chance: float
    measures: tuple[ModelMeasure, ...] = ()
    unmeasured: tuple[NotMeasured, ...] = ()
    notes: tuple[str, ...] = ()
    stopped: bool = False  # by Ctrl-C, before all models were finished

    @property
    def names(self) -> tuple[str, ...]:
        """The models, in the order they were given."""
        return tuple(each.name for each in self.runs)

    @property
    def decided_by(self) -> str:
        """The one quantity that pairs are judged by: accuracy on the test samples, loss there, or the final loss."""
        return next(
            name for name in (TEST, TEST_LOSS, LOSS) if all(name in each.finals for each in self.runs)
        )

    def sample(self, model: str, quantity: str) -> np.ndarray:
        """A quantity of every network of a model, in the order of the seeds."""
        runs = {each.name: each for each in self.runs}[one_of("model", model, self.names)]
        return runs.finals[one_of("quantity", quantity, runs.finals)]

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """Every pair of models, paired by seed and judged as one family by Holm's procedure."""
        samples = {each.name: each.finals[self.decided_by] for each in self.runs}
        return differences(self.decided_by, samples, lower_is_better=self.decided_by in (LOSS, TEST_LOSS))

    def frame(self) -> pd.DataFrame:
        """A table with one row per model, seed and quantity; what is measured by layer has one per layer, too."""
        import pandas as pd

        rows: list[dict[str, Any]] = []
        for runs in self.runs:
            outcomes = dict(runs.finals) | {
                "diverged": runs.diverged,
                "never learns": runs.never_learn(self.chance),
            }
            for quantity, values in outcomes.items():
                rows += [
                    _row(runs.name, seed, quantity, "after", "", value)
                    for seed, value in zip(self.seeds, values, strict=True)
                ]
        for each in self.measures:
            quantity = f"{each.instrument}: {each.quantity}"
            for seed, values in zip(self.seeds, each.values, strict=True):
                rows += [
                    _row(each.model, seed, quantity, each.when, place, value)
                    for place, value in zip(each.places, values, strict=True)
                ]
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """All that the text says, as plain numbers; None stands for what is unknown or has no end."""
        models = []
        for runs in self.runs:
            none = np.array([])
            finals = {
                name.replace(" ", "_"): _estimate(name, runs.finals.get(name, none)) for name in QUANTITIES
            }
            models.append(
                {
                    "name": runs.name,
                    "parameters": runs.parameters,
                    "rate": runs.rate.rate,
                    "rate_at_edge": runs.rate.at_edge,
                    **finals,
                    "diverged": int(runs.diverged.sum()),
                    "never_learn": int(runs.never_learn(self.chance).sum()),
                }
            )
        return {
            "seeds": len(self.seeds),
            "steps": self.steps,
            "trained_on": self.trained_on,
            "loss": self.loss,
            "decided_by": self.decided_by,
            "models": models,
            "differences": [_plain(vars(each)) for each in self.differences],
            "measures": [
                {
                    "model": each.model,
                    "instrument": each.instrument,
                    "quantity": each.quantity,
                    "when": each.when,
                    **_plain(dict(zip(ENDS, each.estimate, strict=True))),
                }
                for each in self.measures
            ],
            "unmeasured": [vars(each) for each in self.unmeasured],
            "notes": list(self.notes),
            "stopped": self.stopped,
        }

    def plot(self) -> Any:
        """Draw the loss over training with intervals, and what the networks end with, one colour per model."""
        from skiplab.diagnosis.comparison.drawing import drawn

        return drawn(self)

    def save(self, path: str | Path) -> Path:
        """Write one HTML page with tables and the figure, which asks nothing of the network.

        A file that is there and is no earlier page of ours is left alone and refused.
        """
        from skiplab.diagnosis.comparison.page import write_page

        return write_page(self, Path(path))

    def __repr__(self) -> str:
        parts = ((len(self.runs), "model"), (len(self.seeds), "seed"), (self.steps, "step"))
        lines = [f"{', '.join(words.count(*part) for part in parts)} of Adam on {self.trained_on}"]
        for runs in self.runs:
            lines += wrap(f"  {runs.name}: {self.summary(runs)}", WIDTH, subsequent_indent="    ")
        if self.differences:
            lines.append(f"  {self.decided_by}, paired by seed:")
            lines += [f"    {each}" for each in self.differences]
        lines += self._measured_lines()
        lines.append(f"  {self.loss}")
        for note in (*self.refusals, *self.notes):
            lines += wrap(f"  {note}", WIDTH, subsequent_indent="    ")
        return "\n".join(lines)

    def summary(self, runs: ModelRuns) -> str:
        """One model in words: what it ends with, at which rate, and how many networks fail."""
        told = [
            f"{name} {mean_in_words(values, BOUNDS.get(name, ANYWHERE))}"
            for name, values in runs.finals.items()
            if name != TEST_LOSS or TEST not in runs.finals
        ]
        told.append(f"rate {runs.rate}")
        failures = {"diverged": runs.diverged, "never learn": runs.never_learn(self.chance)}
        for name, which in failures.items():
            if which.any():
                told.append(f"{share_in_words(int(which.sum()), len(which))} {name}")
        return "; ".join(told)

    @property
    def refusals(self) -> list[str]:
        """What could not be measured and why, each reason once."""
        reasons: dict[tuple[str, str], list[str]] = {}
        for each in self.unmeasured:
            reasons.setdefault((each.instrument, each.why), []).append(f"{each.model} {each.when}")
        return [
            f"not measured: {instrument} of {', '.join(some)} training: {why}"
            for (instrument, why), some in reasons.items()
        ]

    def _measured_lines(self) -> list[str]:
        lines = []
        for instrument in dict.fromkeys(each.instrument for each in self.measures):
            some = [each for each in self.measures if each.instrument == instrument]
            how = f", {some[0].place}" if some[0].place else ""
            lines.append(f"  {instrument} ({some[0].quantity}{how}), before → after training:")
            for model in dict.fromkeys(each.model for each in some):
                when = {each.when: str(each) for each in some if each.model == model}
                lines.append(f"    {model}: {when.get('before', '–')} → {when.get('after', '–')}")
        return lines

    def _repr_html_(self) -> str:
        table = self.frame()
        shown = table.head(MOST_ROWS).to_html(index=False, float_format=lambda number: f"{number:.4g}")
        more = f"<p>{len(table) - MOST_ROWS} further rows in .frame()</p>" if len(table) > MOST_ROWS else ""
        return f"<pre>{escape(repr(self))}</pre>{shown}{more}"


def share_in_words(count: int, total: int) -> str:
    """A count among all with Wilson's interval of the share."""
    low, high = share_interval(count, total)
    return f"{count} of {total} ({low:.0%} to {high:.0%})"


def _row(model: str, seed: int, quantity: str, when: str, place: str, value: Any) -> dict[str, Any]:
    row = {"model": model, "seed": seed, "quantity": quantity, "when": when, "place": place}
    return row | {"value": float(value)}


def _estimate(quantity: str, values: np.ndarray) -> dict[str, float | None]:
    return _plain(dict(zip(ENDS, mean_interval(values, BOUNDS.get(quantity, ANYWHERE)), strict=True)))


def _plain(content: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no NaN and no infinity."""
    return {
        name: None if isinstance(value, float) and not np.isfinite(value) else value
        for name, value in content.items()
    }
