"""Does one group, the best or the worst networks, have more of a quantity than the other?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from skiplab.experiments.best_and_worst import BestAndWorst, best_and_worst
from skiplab.experiments.gains import PLAIN
from skiplab.experiments.narrow_networks import NARROW, values
from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2018.figure_s2.trials import gains


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


def more_of(quantity: str, *, in_the: str) -> Found:
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
                samples = [values(rows, quantity, epoch) for rows in order]
                yield Evidence(
                    f"epoch {epoch}, {condition.data}, {condition.gain_in_words}",
                    samples,
                    headline=condition.judged and epoch > 0,
                    detail=groups.missed(sum(map(len, samples))),
                )

    return found
