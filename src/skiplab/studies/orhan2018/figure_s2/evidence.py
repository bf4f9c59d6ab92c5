"""Does one group, the best or the worst networks, have more of a quantity than the other?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from skiplab.experiments.best_and_worst import BestAndWorst, best_and_worst
from skiplab.experiments.epoch_figures import runs_at
from skiplab.experiments.gains import PLAIN
from skiplab.experiments.narrow_networks import NARROW, values
from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2018.figure_s2.trials import gains
from skiplab.studies.orhan2018.tested import peak_accuracies

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

Measure = Callable[
    ["pd.DataFrame", str, int], "np.ndarray"
]  # rows of a group, a quantity, an epoch → a sample


class Condition(NamedTuple):
    """Networks on one data set at one gain: whether they are judged there, and the groups."""

    data: str
    gain: float
    judged: bool
    groups: BestAndWorst

    @property
    def gain_in_words(self) -> str:
        """The gain, as figures and conditions call it."""
        return f"gain {self.gain:.3g}"


def conditions(results: Results) -> Iterator[Condition]:
    """Yield every condition of which there are networks, on each data set the best gain first.

    What spectra say is judged at Glorot's gain, if networks learn there.
    """
    for data in results.settings.data:
        judged = NARROW.common_gain(results, data, [PLAIN])
        for gain in gains(results, data):
            everyone = NARROW.at(results, data, PLAIN, gain)
            if len(everyone):
                groups = best_and_worst(everyone, results.settings.extremes)
                yield Condition(data, gain, gain == judged, groups)


def since_start(rows: pd.DataFrame, quantity: str, epoch: int) -> np.ndarray:
    """The change of a quantity since epoch 0, one number per network: initial weights are drawn, not learned."""
    epochs, runs = runs_at(rows, quantity)
    change: np.ndarray = runs[:, epochs.index(epoch)] - runs[:, epochs.index(0)]
    return change


def more_of(quantity: str, *, in_the: str, taken: Measure = values) -> Found:
    """Evidence that one group ("best" or "worst") has more of a quantity than the other, at every measured epoch.

    Networks after some training are the headline. Before training (epoch 0) the groups differ by
    their random initial weights alone, of which the paper says nothing.
    """

    def found(results: Results) -> Iterator[Evidence]:
        for condition in conditions(results):
            groups = condition.groups
            if not groups.have(quantity):
                continue
            order = groups if in_the == "best" else (groups.worst, groups.best)
            for epoch in results.settings.at:
                samples = [taken(rows, quantity, epoch) for rows in order]
                yield Evidence(
                    f"epoch {epoch}, {condition.data}, {condition.gain_in_words}",
                    samples,
                    headline=condition.judged and epoch > 0,
                    detail=groups.missed(sum(map(len, samples))),
                )

    return found


def peaks(results: Results) -> Iterator[Evidence]:
    """The best and the worst networks' peaks of test accuracy; none where there are no test images."""
    for condition in conditions(results):
        if condition.groups.have("test_accuracy"):
            samples = [peak_accuracies(rows) for rows in condition.groups]
            words = f"{condition.data}, {condition.gain_in_words}"
            yield Evidence(words, samples, headline=condition.judged)
