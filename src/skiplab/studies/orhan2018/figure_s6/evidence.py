"""What is compared between plain and residual networks of two layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from skiplab.experiments.gains import PLAIN, RESIDUAL, Gains, Model, Quantity
from skiplab.experiments.narrow_networks import BEFORE, NARROW, values
from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2018.effects import HALF_POINT
from skiplab.studies.orhan2018.figure_s6.plot import SECOND

# Gains tie within the half of a point that the claim looks for.
FINE = Gains(tie=HALF_POINT)


def residual_against_plain(quantities: Mapping[str, Quantity]) -> Found:
    """Evidence that residual nets reach more of each quantity: at full width, and the narrow ones beside."""

    def found(results: Results) -> Iterator[Evidence]:
        shape = f"2×{results.settings.narrow} networks on {results.settings.narrow_components} components"
        for name, quantity in quantities.items():
            for row in FINE.compare(RESIDUAL, PLAIN, quantity, common=False)(results):
                yield replace(row, condition=f"{name}, {row.condition}")
            for condition in NARROW.conditions(results, [RESIDUAL, PLAIN]):
                samples = [quantity(rows) for rows in condition.rows]
                words = f"{name}, {shape}, {condition.words}"
                yield condition.evidence(samples, words, headline=False)

    return found


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
