"""Figure S1: figure 3 with plain and residual networks of 10 layers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.gains import PLAIN, RESIDUAL
from skiplab.experiments.narrow_networks import NARROW, measured_narrow
from skiplab.experiments.networks import Member
from skiplab.reproduction import Call, Claim, Evidence, Results, Study, scales
from skiplab.studies.orhan2018 import spectra_over_training
from skiplab.studies.orhan2018.spectra_over_training import QUICK, SMOKE, Comparison

TWO = Comparison((PLAIN, RESIDUAL))
LAYERS: dict[str, Any] = {"depth": 10, "narrow_depth": 10}
FURTHER = 25  # narrow networks per model at the common gain, besides those that every gain has
NOT_RUN_HERE = f"{FURTHER} further networks per model, declared for the paper's scale, are not run here"


@dataclass(frozen=True)
class Settings(spectra_over_training.Settings):
    """Those of figure 3, and how many more narrow networks per model there are at the common gain."""

    further_runs: int = 0


def more_at_the_common_gain(results: Results) -> list[Call]:
    """Third stage: more narrow networks at the gain at which spectra are judged."""
    settings = results.settings
    runs = settings.narrow_runs + settings.further_runs
    seeds = networks.final_seeds(settings.seed, runs)[settings.narrow_runs :]
    if not seeds:
        return []
    return [
        measured_narrow(settings, data, model, [Member(seed, gain) for seed in seeds])
        for data, model in product(settings.data, TWO.models)
        for gain in [NARROW.common_gain(results, data, TWO.models)]
    ]


def telling_what_is_not_run(claim: Claim) -> Claim:
    """The same claim about narrow networks, whose judged rows say so where the further networks were not run."""

    def told(results: Results) -> Iterator[Evidence]:
        for row in claim.evidence(results):
            more = "" if results.settings.further_runs or not row.headline else NOT_RUN_HERE
            yield replace(row, detail="; ".join(filter(None, (row.detail, more))))

    return replace(claim, evidence=told)


DEGENERATE, NEGATIVE, ACCURACY = TWO.claims()

STUDY = Study(
    id="orhan2018/figure-S1",
    words=__file__,
    settings=scales(
        Settings,
        quick={**QUICK, **LAYERS, "narrow_runs": 10, "further_runs": 0},
        smoke={**SMOKE, "further_runs": 1},
        **LAYERS,
        further_runs=FURTHER,
    ),
    stages=(TWO.search, TWO.decide, more_at_the_common_gain),
    figure=TWO.figure,
    claims=(*map(telling_what_is_not_run, (DEGENERATE, NEGATIVE)), ACCURACY),
    cost={"quick": 25, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
