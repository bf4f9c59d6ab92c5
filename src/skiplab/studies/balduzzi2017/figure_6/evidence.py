"""Accuracies of thin networks by depth, and what they say of the claims."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.balduzzi2017.figure_6.trials import train

if TYPE_CHECKING:
    import numpy as np

LINEAR = 0.4  # section 5.1: "the linear baseline of 40%"


def accuracies(
    results: Results, data: str, model: str, depth: int, quantity: str = "test_accuracy"
) -> np.ndarray:
    """One number per network: a quantity at the last epoch, in the order of seeds."""
    rows = results.rows(train, data=data, model=model, depth=depth, quantity=quantity)
    return sample_of(matching(rows, epoch=rows["epoch"].max()))


def falling(model: str) -> Callable[[Results], list[Evidence]]:
    """Evidence on a model's test accuracies from its deepest to its shallowest networks."""

    def found(results: Results) -> list[Evidence]:
        settings = results.settings
        depths = sorted(settings.depths, reverse=True)
        where = f"depths {depths[-1]} to {depths[0]}"
        return [
            Evidence(f"{data}, {where}", [accuracies(results, data, model, depth) for depth in depths])
            for data in settings.data
            if model in settings.models and len(depths) > 1
        ]

    return found


def below_linear(results: Results) -> list[Evidence]:
    """How far the deepest ReLU networks stay below the accuracy of a linear classifier."""
    settings = results.settings
    deepest = max(settings.depths)
    return [
        Evidence(f"{data}, {deepest} layers", [LINEAR - accuracies(results, data, "relu", deepest)])
        for data in settings.data
        if "relu" in settings.models
    ]


def as_good(results: Results) -> list[Evidence]:
    """Test accuracies of looks-linear and residual networks; the deepest decide, the others are further rows."""
    settings, models = results.settings, ("crelu-ll", "resnet")
    return [
        Evidence(
            f"{data}, {depth} layers",
            [accuracies(results, data, model, depth) for model in models],
            headline=depth == max(settings.depths),
            detail="looks linear minus residual",
        )
        for data, depth in product(settings.data, sorted(settings.depths, reverse=True))
        if set(models) <= set(settings.models)
    ]
