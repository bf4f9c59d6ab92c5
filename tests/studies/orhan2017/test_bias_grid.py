"""BiasSymmBreak's grid: trained on search seeds, and its best point taken by the mean at one gain."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pandas as pd

from skiplab.experiments import networks
from skiplab.reproduction.results import Part, Results
from skiplab.studies.orhan2017.bias_grid import SYMM_BREAK, WITH_BN, BiasGrid, GridSettings, experiment

Make = Callable[..., pd.DataFrame]
SETTINGS = GridSettings(
    data=("digits",), gains=(0.3, 1.0), search_runs=3, sigmas=(0.0, 0.1), strengths=(0.01, 1.0)
)


def test_a_search_trains_every_point_of_its_grid_on_search_seeds() -> None:
    grid = BiasGrid().search(SETTINGS, "digits")
    named = grid.settings
    points = list(zip(named.gains, named.sigmas, named.strengths, named.seeds, strict=True))
    assert len(points) == len(set(points)) == 2 * 2 * 2 * 3
    assert min(named.seeds) == 500
    assert grid.stage == "search"
    assert BiasGrid(l2=True).search(SETTINGS, "digits") == grid


def test_the_best_bias_is_taken_by_its_mean_at_one_gain(trained: Make) -> None:
    tables = [
        trained("bias-symm-break", 500, [0.9, 0.2], gain=0.3, sigma=0.1, strength=0.01),
        trained("bias-symm-break", 501, [0.9, 0.4], gain=0.3, sigma=0.1, strength=0.01),
        # Better on one seed only, and only before the last epoch.
        trained("bias-symm-break", 500, [0.1, 0.5], gain=0.3, sigma=0.3, strength=0.01),
        trained("bias-symm-break", 501, [1.0, 0.0], gain=0.3, sigma=0.3, strength=0.01),
        trained("bias-symm-break", 500, [0.8, 0.8], gain=0.3, sigma=0.0, strength=0.1),
        trained("bias-symm-break", 500, [0.9, 0.9], gain=1.0, sigma=1.0, strength=1.0),
    ]
    results = Results(SETTINGS, [Part(networks.train.name, "search", table) for table in tables])
    assert BiasGrid().best(results, "digits", 0.3) == {"sigma": 0.1, "strength": 0.01}
    assert BiasGrid(l2=True).best(results, "digits", 0.3) == {"sigma": 0.0, "strength": 0.1}
    assert BiasGrid().best(results, "digits", 1.0) == {"sigma": 1.0, "strength": 1.0}


def test_a_batch_norm_has_a_search_of_its_own_only_if_asked_for(trained: Make) -> None:
    """Without it σ and λ are those found without the BatchNorm, and its gain is searched once they are known."""
    tables = [
        trained(model, 500, [value], gain=0.3, sigma=sigma, strength=0.01)
        for model, values in (("bias-symm-break", (0.9, 0.2)), ("bias-symm-break-bn", (0.3, 0.8)))
        for sigma, value in zip((0.1, 0.3), values, strict=True)
    ]
    parts = [Part(networks.train.name, "search", table) for table in tables]
    grid, both = BiasGrid(bn=True), experiment(SYMM_BREAK, WITH_BN)
    for asked, found, first, then in ((False, 0.1, 1, 1), (True, 0.3, 2, 0)):
        settings = dataclasses.replace(SETTINGS, gains=(0.3,), bn_searched=asked)
        results = Results(settings, parts)
        assert grid.best(results, "digits", 0.3)["sigma"] == found
        calls = [call for call in both.decide(results) if call.stage == "search"]
        assert (len(both.search(settings_only(settings))), len(calls)) == (first, then)
        decided = {call.settings.model: set(call.settings.sigmas) for call in both.decide(results)}
        assert decided == {"bias-symm-break": {0.1}, "bias-symm-break-bn": {found}}


def settings_only(settings: GridSettings) -> Results:
    return Results(settings, [])
