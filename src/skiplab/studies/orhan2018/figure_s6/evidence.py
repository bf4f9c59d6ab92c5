"""What is compared between plain and residual networks of two layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

from skiplab.experiments.gains import PLAIN, RESIDUAL, Gains, Model, Quantity
from skiplab.experiments.narrow_networks import BEFORE, NARROW, values
from skiplab.experiments.open_claims import difference
from skiplab.reproduction import NOT_SAID, Evidence, Found, Results
from skiplab.studies.orhan2018.effects import HALF_POINT
from skiplab.studies.orhan2018.figure_s6.plot import FINE, FINE_NARROW, SECOND

MODELS = (RESIDUAL, PLAIN)  # in the order of the claim


class Reached(NamedTuple):
    """What residual and plain networks of one width had reached by an epoch: as if training had ended there."""

    shape: str
    epoch: int
    row: Evidence

    @property
    def told(self) -> str:
        """By how many points residual networks are ahead, in words."""
        return f"{100 * difference(self.row.samples):+.1f} points for {self.shape} by epoch {self.epoch}"


def residual_against_plain(quantities: Mapping[str, Quantity]) -> Found:
    """Evidence that residual nets reach more of each quantity: two widths at their own gains, and several durations.

    The caption names neither width nor epochs. Where these decide whether the difference is worth having, the
    headline is the paper's own networks, of which there are no runs, and all of ours are further rows.
    """

    def found(results: Results) -> Iterator[Evidence]:
        for (name, quantity), data in product(quantities.items(), results.settings.data):
            judged, *others = _at_own_gains(results, data, quantity)
            by_effect = sorted((judged, *others), key=lambda each: difference(each.row.samples))
            least, most = by_effect[0], by_effect[-1]
            decide = difference(least.row.samples) < HALF_POINT <= difference(most.row.samples)
            if decide:
                told = f"{most.told}, {least.told}"
                why = f"the caption names neither width nor epochs, and they decide: {told}"
                yield Evidence.without(f"{name}, {data}, the paper's width and epochs", NOT_SAID, why, 2)
            for reached in (judged, *others):
                words = f"{name}, {reached.shape}, {reached.epoch} epochs, {reached.row.condition}"
                headline = reached is judged and not decide
                yield replace(reached.row, condition=words, headline=headline)
            for shape, size in _shapes(results).items():
                for condition in size.conditions_on(results, data, MODELS):
                    samples = [quantity(rows) for rows in condition.rows]
                    if not condition.headline:
                        yield condition.evidence(samples, f"{name}, {shape}, {condition.words}")

    return found


def _shapes(results: Results) -> dict[str, Gains]:
    """The two sizes of networks by their layers and units."""
    settings = results.settings
    return {f"2×{settings.width}": FINE, f"2×{settings.narrow}": FINE_NARROW}


def _at_own_gains(results: Results, data: str, quantity: Quantity) -> Iterator[Reached]:
    """What both widths reach at their own gains by each end that training could have had: first ours at full width.

    The learning rate is constant, so that the first epochs of longer training are all of shorter training.
    """
    settings = results.settings
    # Epochs that are measured; training that ends before a tenth of ours no figure would show.
    ends = [
        settings.epochs,
        *(each for each in settings.at if settings.epochs <= 10 * each < 10 * settings.epochs),
    ]
    for shape, size in _shapes(results).items():
        own = next(size.conditions_on(results, data, MODELS))
        for epoch in ends:
            samples = [quantity(rows[rows["epoch"] <= epoch]) for rows in own.rows]
            if all(map(len, samples)):
                yield Reached(shape, epoch, replace(own.evidence(samples), to_gain=own.to_gain))


def first_layer_gradients(results: Results) -> Iterator[Evidence]:
    """Log gradient norms in the first layer's activities, residual and plain."""
    import numpy as np

    for row in _in_layer(results, "gradient_norm", 1, (RESIDUAL, PLAIN)):
        # A vanished gradient may be exactly 0; the smallest float32 stands in for it.
        logs = [np.log(np.maximum(norms, np.finfo(np.float32).tiny)) for norms in row.samples]
        yield replace(row, samples=logs)


def second_layer_overlaps(results: Results) -> Iterator[Evidence]:
    """Mean correlations between the incoming weights of the second layer's units, plain and residual."""
    yield from _in_layer(results, "overlap", SECOND, (PLAIN, RESIDUAL))


def _in_layer(results: Results, quantity: str, layer: int, models: Sequence[Model]) -> Iterator[Evidence]:
    """A quantity of one layer of the narrow networks at every epoch; before training it is a further row."""
    for condition in NARROW.conditions(results, models, common=True):
        for epoch in results.settings.at:
            yield condition.evidence(
                [values(rows, quantity, epoch, layer) for rows in condition.rows],
                f"epoch {epoch}, {condition.words}",
                headline=condition.headline and epoch > 0,
                detail="" if epoch else BEFORE,
            )
