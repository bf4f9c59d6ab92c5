"""Figure S6 as a study: two-layer networks at full width, and narrow ones on which all is measured."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import PLAIN, RESIDUAL, accuracies
from skiplab.experiments.measured_networks import CurvatureSettings, Measured
from skiplab.experiments.narrow_networks import every_epoch, narrow_runs, narrow_searches
from skiplab.experiments.networks import Member
from skiplab.reproduction import Call, Claim, Greater, Results, Study, scales
from skiplab.studies.orhan2018.effects import HALF_POINT, OVERLAP, SHARE, TENTH
from skiplab.studies.orhan2018.figure_s6.evidence import (
    first_layer_gradients,
    residual_against_plain,
    second_layer_overlaps,
)
from skiplab.studies.orhan2018.figure_s6.plot import MODELS, figure
from skiplab.studies.orhan2018.tested import peak_accuracies


@dataclass(frozen=True)
class Settings(CurvatureSettings):
    """The common settings with two layers; gradient norms are taken at ``norms_at``, through all of training."""

    runs: int = 16
    depth: int = 2
    narrow: int = 32
    narrow_depth: int = 2
    narrow_runs: int = 16
    norms_at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)


def search(results: Results) -> list[Call]:
    """First stage: each model's best gain, at full width and for the narrow networks."""
    narrow = narrow_searches(results.settings, MODELS, results.settings.data)
    return GainExperiment(*MODELS).search(results) + narrow


def decide(results: Results) -> list[Call]:
    """Second stage: accuracies at full width and every gain; narrow networks, on which all is measured."""
    settings, calls = results.settings, []
    seeds = networks.final_seeds(settings.seed, settings.runs)
    for data, model in product(settings.data, MODELS):
        options = {"by_layer": True, "test": True, "norms_at": settings.norms_at}
        calls.append(narrow_runs(results, data, model, **options))
        for gain in settings.gains:
            members = [Member(seed, gain) for seed in seeds]
            named = networks.together(settings.training, data, model.name, members)
            tested = Measured(named, "wide", at=settings.at, test=True)
            calls.append(measured.call(tested, f"full width, gain {gain:.3g}", stage="decide"))
    return calls


TWO_LAYERS = {"depth": 2, "narrow_depth": 2}
QUICK = {"runs": 8, "narrow": 16, "narrow_runs": 8, "other_runs": 5, "norms_at": (0, 3, 25)}

STUDY = Study(
    id="orhan2018/figure-S6",
    words=__file__,
    settings=scales(
        Settings,
        quick={**measured.QUICK, **TWO_LAYERS, **QUICK},
        smoke={**measured.SMOKE, **TWO_LAYERS, "norms_at": (0, 1)},
    ),
    stages=(search, decide),
    figure=figure,
    claims=(
        Claim(
            "residual-better",
            "“Residual nets perform slightly better” than plain ones, in training and in test accuracy (2×128 units, "
            "100 epochs and one skip, which are ours).",
            residual_against_plain({"training": accuracies, "test": peak_accuracies}),
            kind=Greater(worth=HALF_POINT),
            unit="accuracy",
        ),
        Claim(
            "plain-more-degenerate",
            "Residual networks have fewer degenerate eigenvalues than plain ones, at every epoch of training.",
            every_epoch("degenerate", PLAIN, RESIDUAL),
            kind=Greater(worth=SHARE),
            unit="fraction",
        ),
        Claim(
            "residual-more-negative",
            "As in figure 3, residual networks have more negative eigenvalues, at every epoch of training.",
            every_epoch("negative", RESIDUAL, PLAIN),
            kind=Greater(worth=SHARE),
            unit="fraction",
            source="ours",
        ),
        Claim(
            "residual-larger-gradients",
            "Gradients in the first layer's activities are larger in residual networks, at every epoch of training.",
            first_layer_gradients,
            kind=Greater(worth=TENTH),
            unit="log norm",
            source="ours",
        ),
        Claim(
            "residual-overlaps-less",
            "Units of the second layer overlap less in residual networks, at every epoch of training.",
            second_layer_overlaps,
            kind=Greater(worth=OVERLAP),
            unit="correlation",
            source="ours",
        ),
    ),
    cost={"quick": 20, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
