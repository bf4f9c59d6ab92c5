"""What is run for figure 12, and what is claimed: decreasing profiles are best and leave the least symmetry."""

from __future__ import annotations

from itertools import product
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.apart import other_gains_apart
from skiplab.experiments.gains import ONE_POINT, PLAIN
from skiplab.experiments.networks import Member
from skiplab.reproduction import Call, Claim, Exact, Greater, Results, Study, scales
from skiplab.studies.orhan2017.figure_12.evidence import (
    generally,
    of_those_that_learn,
    open_if_dead,
    starts,
    whole,
)
from skiplab.studies.orhan2017.figure_12.profiles import (
    CONSTANT,
    DECREASING,
    INCREASING,
    KINDS,
    PROFILES,
    ProfileSettings,
)
from skiplab.studies.orhan2017.figure_12.trials import Start, constant_or_start, train_and_rescale
from skiplab.studies.orhan2017.rescaled_networks import (
    above_chance,
    compare_ratios,
    rescaled,
    seeds_at_gains,
)
from skiplab.studies.orhan2017.smallest_effects import ONE_PERCENT

# Of float64 outputs of 30 layers, and of parameters after 20 steps.
ROUNDING = 1e-9
QUICK: dict[str, Any] = {
    **networks.QUICK,
    "runs": 8,
    "search_runs": 2,
    "other_runs": 5,
    "slopes": (0.0, -0.006, -0.012),
    "rising": (0.006,),
    "offsets": (0.0, 0.06, 0.12),
    "rescaled_on": 1000,
}
SMOKE: dict[str, Any] = {
    **networks.SMOKE,
    "other_runs": 2,
    "slopes": (0.0, -0.012),
    "rising": (0.012,),
    "offsets": (0.0, 0.12),
    "rescaled_on": 100,
    "pairs": 2,
}


def search(results: Results) -> list[Call]:
    """First stage: all profiles on search seeds, one batch per gain."""
    settings, calls = results.settings, []
    seeds = networks.search_seeds(settings.seed, settings.search_runs)
    for data, gain in product(settings.data, settings.gains):
        grid = product(settings.profiles, seeds)
        members = [Member(seed, gain, slope=slope, offset=offset) for (slope, offset), seed in grid]
        what = f"search at gain {gain:.3g}"
        calls.append(networks.call(settings.search, data, "bias-profile", members, what=what))
    return calls


def decide(results: Results) -> list[Call]:
    """Second stage: the best profile of each kind at every gain, trained and rescaled; and where it could start."""
    settings, calls = results.settings, []
    for data, kind in product(settings.data, KINDS):
        best = PROFILES.best_gain(results, data, kind)
        lines = {gain: PROFILES.best_profile(results, data, kind, gain) for gain in settings.gains}
        members = [Member(seed, gain, **lines[gain]) for gain, seed in seeds_at_gains(settings, best)]
        named = networks.together(settings.training, data, "bias-profile", members)
        label = f"{networks.label(named, kind.name)}, rescaled"
        calls.append(train_and_rescale.of(rescaled(settings, named), label))
    # The mildest decreasing profile, which leaves random networks alive: dead ones would agree on anything.
    mildest = max(slope for slope in settings.slopes if slope < 0)
    few = tuple(networks.final_seeds(settings.seed, min(settings.runs, 5)))
    start = Start(few, mildest, max(settings.offsets), settings.depth, settings.width)
    return [*calls, constant_or_start.of(start, "constant biases and biases that start there", stage="start")]


def figure(results: Results) -> Any:
    """The paper's three panels above; the grid, all gains and the symmetry at all gains below."""
    from skiplab.studies.orhan2017.figure_12.plot import panels

    return panels(results)


STUDY = Study(
    id="orhan2017/figure-12",
    words=__file__,
    settings=scales(ProfileSettings, quick=QUICK, smoke=SMOKE),
    stages=(search, other_gains_apart(decide)),
    figure=figure,
    claims=(
        Claim(
            "decreasing-beats-constant",
            "“The best-performing network had a decreasing bias profile”: the best decreasing profile performs "
            "better than the best one that is the same in all layers.",
            of_those_that_learn(PROFILES.compare(DECREASING, CONSTANT)),
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="section 2.4.3",
        ),
        Claim(
            "constant-beats-plain",
            "The best profile that is the same in all layers performs better than the plain network.",
            of_those_that_learn(PROFILES.compare(CONSTANT, PLAIN)),
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="section 2.4.3",
        ),
        Claim(
            "decreasing-beats-plain",
            "The best decreasing profile performs better than the plain network.",
            of_those_that_learn(PROFILES.compare(DECREASING, PLAIN)),
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="section 2.4.3",
        ),
        Claim(
            "generally-above-plain",
            "Networks with constant biases generally perform better than the plain network (over all of the grid).",
            generally,
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="section 2.4.3",
        ),
        Claim(
            "positive-slopes-worse",
            "Positive slopes perform worse than negative ones.",
            of_those_that_learn(PROFILES.compare(DECREASING, INCREASING)),
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="caption",
        ),
        Claim(
            "decreasing-less-symmetric",
            "The best decreasing profile leaves less rescaling symmetry than the best constant one (paper: p < .01).",
            open_if_dead(compare_ratios(PROFILES, CONSTANT, DECREASING)),
            kind=Greater(worth=ONE_PERCENT),
            unit="ratio",
            source="caption",
        ),
        Claim(
            "constant-less-symmetric",
            "The best constant profile leaves less rescaling symmetry than the plain network has.",
            compare_ratios(PROFILES, PLAIN, CONSTANT),
            kind=Greater(worth=ONE_PERCENT),
            unit="ratio",
            source="section 2.4.3",
        ),
        Claim(
            "decreasing-less-symmetric-than-plain",
            "The best decreasing profile leaves less rescaling symmetry than the plain network has.",
            compare_ratios(PROFILES, PLAIN, DECREASING),
            kind=Greater(worth=ONE_PERCENT),
            unit="ratio",
            source="section 2.4.3",
        ),
        Claim(
            "decreasing-less-above-chance",
            "With the best decreasing profile networks keep less of their accuracy above chance.",
            PROFILES.compare(CONSTANT, DECREASING, above_chance, common=False, paired=False),
            kind=Greater(worth=ONE_PERCENT),
            unit="ratio above chance",
            source="ours",
        ),
        Claim(
            "whole-symmetric",
            "If the constant biases are rescaled with the trained ones, every network is exactly symmetric.",
            whole,
            kind=Exact(rounding=ROUNDING),
            unit="largest relative change of outputs",
            source="ours",
        ),
        Claim(
            "constant-is-a-start",
            "Constant biases train exactly as biases that start at a·l + b, with no constant added (float64).",
            starts,
            kind=Exact(rounding=ROUNDING),
            unit="difference of parameters, relative",
            source="ours",
        ),
    ),
    cost={"quick": 40, "paper": 400},
    paper_device="one H200",
    alpha=0.01,
    in_tour=False,
)
