"""From the theorems' table to curves and points."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skiplab.studies.balduzzi2017 import theorem_models as models
from skiplab.studies.balduzzi2017.theorem_evidence import depths_of, sample

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.figures.gradient_theory import Curves, Points
    from skiplab.studies.balduzzi2017.theorems import Settings

PANELS = (
    (models.PLAIN, models.RESIDUAL),
    (models.NORMALISED, models.NORMALISED_TENTH),
    (models.HIGHWAY,),
)
LABELS = {
    "plain": "plain",
    "residual": "resnet",
    "batch norm 1": "β = 1",
    "batch norm .1": "β = .1",
    "highway": "highway",
}
QUANTITIES = ("variance", "correlation")
DEEPEST = 100


def draw(frame: pd.DataFrame, settings: Settings) -> Any:
    """Hand curves and points of every panel to the figure."""
    from skiplab.figures.gradient_theory import theorem_panels

    curves = {LABELS[model.name]: _curves(model, settings.batch) for group in PANELS for model in group}
    points = {LABELS[model.name]: _points(frame, model) for group in PANELS for model in group}
    groups = [[LABELS[model.name] for model in group] for group in PANELS]
    return theorem_panels(groups, curves, points)


def _curves(model: models.Model, batch: int) -> Curves:
    """(quantity, kind) → (L, values); kinds are exact, printed and corrected."""
    found = {}
    depths = range(2, DEEPEST + 1)
    for quantity in QUANTITIES:
        for kind in ("exact", "printed", "corrected"):
            values = []
            for L in depths:
                if kind == "printed":
                    variance, correlation = models.printed(model, L)
                else:
                    chosen = models.theory(model, L) if kind == "exact" else models.corrected(model, L, batch)
                    variance, correlation = chosen.variance, chosen.correlation
                values.append(variance if quantity == "variance" else correlation)
            found[quantity, kind] = (list(depths), values)
    return found


def _points(frame: pd.DataFrame, model: models.Model) -> Points:
    """(quantity, law) → (L, samples over runs)."""
    return {
        (quantity, law): (
            depths_of(frame, law, model),
            [sample(frame, law, model, L, quantity) for L in depths_of(frame, law, model)],
        )
        for quantity in QUANTITIES
        for law in ("gates", "nets")
    }
