"""What is run for figure 2c, and what is claimed: skips take rescaling symmetry away, more skips more of it."""

from __future__ import annotations

from itertools import product
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import gain_search
from skiplab.experiments.gains import HYPER_RESIDUAL, PLAIN, RESIDUAL, WIDE, Found, compare, each_of
from skiplab.experiments.networks import Member
from skiplab.reproduction import Call, Claim, Exact, Greater, Results, Study, scales
from skiplab.studies.orhan2017.rescaled_networks import (
    RescalingSettings,
    above_chance,
    after,
    compare_ratios,
    rescaled,
    seeds_at_gains,
    train_and_rescale,
)
from skiplab.studies.orhan2017.smallest_effects import ONE_PERCENT

MODELS = (PLAIN, RESIDUAL, HYPER_RESIDUAL)
# Tables keep float32; the measurement itself is in float64. Accuracy moves by whole samples, at least 1e-4 of it.
ROUNDING = 1e-6
# Outputs of a 20-layer network: float64's 1e-16, enlarged where a sum nearly cancels.
OUTPUT_ROUNDING = 1e-10


def search(results: Results) -> list[Call]:
    """First stage: each model's best gain, on seeds of their own."""
    settings = results.settings
    return [gain_search(settings, data, model) for data, model in product(settings.data, MODELS)]


def decide(results: Results) -> list[Call]:
    """Second stage: the runs that decide, most at each model's best gain, trained and then rescaled."""
    settings, calls = results.settings, []
    for data, model in product(settings.data, MODELS):
        best = WIDE.best_gain(results, data, model)
        members = [Member(seed, gain) for gain, seed in seeds_at_gains(settings, best)]
        named = networks.together(settings.training, data, model.name, members)
        calls.append(train_and_rescale.of(rescaled(settings, named), networks.label(named)))
    return calls


def whole(quantity: str, by: float) -> Found:
    """Evidence on how far a quantity of plain networks is from what a whole symmetry gives."""
    return each_of([PLAIN], lambda rows: after(rows, quantity) - by, common=False)


def figure(results: Results) -> Any:
    """Ratios at best gains (as the paper's bars), at every gain, and by the distance of the two layers."""
    from skiplab.studies.orhan2017.figure_2.plot import panels

    return panels(results, MODELS)


STUDY = Study(
    id="orhan2017/figure-2",
    words=__file__,
    settings=scales(
        RescalingSettings,
        quick={**networks.QUICK, "runs": 8, "other_runs": 5, "rescaled_on": 2000},
        smoke={**networks.SMOKE, "other_runs": 2, "rescaled_on": 100, "pairs": 3},
    ),
    stages=(search, decide),
    figure=figure,
    claims=(
        Claim(
            "plain-whole",
            "Plain networks keep all of their accuracy: the ratio is 1 in every run.",
            whole("rescaling", 1.0),
            kind=Exact(rounding=ROUNDING),
            unit="largest |ratio − 1|",
            source="ours",
        ),
        Claim(
            "plain-outputs",
            "The outputs of plain networks do not change at all, up to rounding, for any pair drawn.",
            whole("rescaling_change", 0.0),
            kind=Exact(rounding=OUTPUT_ROUNDING),
            unit="largest relative change",
            source="ours",
        ),
        Claim(
            "residual-less-than-plain",
            "Residual networks have less rescaling symmetry than plain ones.",
            compare_ratios(WIDE, PLAIN, RESIDUAL),
            kind=Greater(worth=ONE_PERCENT),
            unit="ratio",
        ),
        Claim(
            "hyper-less-than-residual",
            "Hyper-residual networks have less rescaling symmetry than residual ones (p < .01).",
            compare_ratios(WIDE, RESIDUAL, HYPER_RESIDUAL),
            kind=Greater(worth=ONE_PERCENT),
            unit="ratio",
        ),
        Claim(
            "hyper-less-above-chance",
            "Hyper-residual networks keep less of their accuracy above chance than residual ones.",
            compare(RESIDUAL, HYPER_RESIDUAL, above_chance, common=False, paired=False),
            kind=Greater(worth=ONE_PERCENT),
            unit="ratio above chance",
            source="ours",
        ),
    ),
    cost={"quick": 40, "paper": 350},
    paper_device="one H200",
    alpha=0.01,
    in_tour=False,
)
