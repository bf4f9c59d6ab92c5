"""Figure S6: the main results with two-layer networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments import old_gains as searches
from skiplab.experiments import old_narrow_networks as comparisons
from skiplab.experiments.measured_networks import CurvatureSettings, Measured
from skiplab.experiments.networks import Member
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

MODELS = ("plain", "residual")
SECOND = 2  # hidden layers are counted from 1


@dataclass(frozen=True)
class Settings(CurvatureSettings):
    """The common settings with two layers; gradient norms are taken at ``norms_at``, through all of training."""

    runs: int = 16
    depth: int = 2
    narrow: int = 32
    narrow_depth: int = 2
    narrow_runs: int = 16
    norms_at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)


QUICK = Settings(
    **networks.QUICK
    | {"depth": 2, "narrow": 16, "narrow_depth": 2, "narrow_runs": 8, "runs": 8, "norms_at": (0, 3, 25)}
)
SMOKE = Settings(**networks.SMOKE | {"depth": 2, "narrow_depth": 2, "norms_at": (0, 1)})


def search(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """First stage: each model's best gain, at full width and for the narrow networks."""
    wide = [searches.gain_search(settings, model, data) for data, model in product(settings.data, MODELS)]
    return wide + comparisons.narrow_search_of(settings, MODELS)


def decide(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Second stage: accuracies at full width and every gain; narrow networks, on which all is measured."""
    found = networks.joined(tables[:1])
    calls: list[Call] = []
    for data, model in product(settings.data, MODELS):
        call = comparisons.narrow_runs(settings, found, data, model, by_layer=True, test=True)
        with_norms = replace(call.settings.networks, norms_at=settings.norms_at)
        calls.append(replace(call, settings=replace(call.settings, networks=with_norms)))
        for gain in settings.gains:
            members = [Member(seed, gain) for seed in earlier.final_seeds(settings.seed, settings.runs)]
            named = earlier.together(settings.training, data, model, members)
            measured = Measured(named, "wide", at=settings.at, test=True)
            calls.append(networks.call(measured, f"full width, gain {gain:.3g}"))
    return calls


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All rows in one long table; part and seed tell them apart."""
    return networks.joined(tables)


def last_test_accuracies(rows: pd.DataFrame) -> np.ndarray:
    """Test accuracy at the last epoch measured, one number a run."""
    tested = rows[rows["quantity"] == "test_accuracy"]
    return comparisons.values(tested, "test_accuracy", tested["epoch"].max())


def residual_against_plain(sample: Any) -> Any:
    """Evidence that residual nets have more of something at the end: at full width, and the narrow ones beside."""

    def evidence(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
        wide = networks.part(frame, "wide")
        yield from searches.compare(
            wide, settings, ("residual", "identity"), ("plain", "identity"), sample=sample
        )
        shape = f"2×{settings.narrow} networks on {settings.narrow_components} components"
        for data in settings.data:
            for condition, _, rows in comparisons.each_narrow_condition(
                frame, settings, data, ("residual", "plain")
            ):
                yield Evidence(f"{shape}, {condition}", [sample(each) for each in rows], headline=False)

    return evidence


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """The paper's six panels, a block of three rows for each data set."""
    from skiplab.figures.style import new_figure, panel_letter

    figure, axes = new_figure(
        columns=2, rows=3 * len(settings.data), width=7.2, height=7.5 * len(settings.data)
    )
    for number, data in enumerate(settings.data):
        _panels(list(axes[3 * number : 3 * number + 3].flat), frame, settings, data)
    for letter, ax in zip("abcdefghijkl", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _panels(axes: Sequence[Any], frame: pd.DataFrame, settings: Settings, data: str) -> None:
    from skiplab.experiments.old_epoch_figures import TITLES
    from skiplab.experiments.old_gain_figures import best_curves
    from skiplab.figures.curves import learning_curves
    from skiplab.studies.orhan2018.spectra_panels import (
        DEGENERATE,
        NEGATIVE,
        at_best,
        fractions_panel,
        line_key,
    )

    training, test, negative, degenerate, norms, overlap = axes
    full, small = f"2×{settings.width} units", f"2×{settings.narrow} units"
    narrow, wide = at_best(frame, "narrow", data, MODELS), at_best(frame, "wide", data, MODELS)
    for part, line in (("wide", "-"), ("narrow", "--")):
        known = len(training.get_lines())
        rows = networks.part(frame, part)
        curves = {model: best_curves(rows, data, model, "identity") for model in MODELS}
        learning_curves(training, range(1, settings.epochs + 1), curves, labels="none")
        for drawn in training.get_lines()[known:]:
            drawn.set(linestyle=line)
    line_key(training, MODELS, {full: "-", small: "--"})
    training.set(title=TITLES.get(data, data), xlabel="epoch", ylabel="training accuracy")
    fractions_panel(test, wide, "test_accuracy", "test accuracy")
    fractions_panel(test, narrow, "test_accuracy", "test accuracy", line="--")
    fractions_panel(negative, narrow, "negative", NEGATIVE, title=f"{small}, exact")
    fractions_panel(degenerate, narrow, "degenerate", DEGENERATE, title=f"{small}, exact")
    for layer, line in ((1, "-"), (SECOND, "--")):
        label = "gradient norm in activities"
        fractions_panel(norms, narrow, "gradient_norm", label, title=small, layer=layer, line=line)
    norms.set_yscale("log")
    line_key(norms, (), {"layer 1": "-", "layer 2": "--"})
    fractions_panel(overlap, narrow, "overlap", "mean overlap, layer 2", title=small, layer=SECOND)


STUDY = Study(
    id="orhan2018/figure-S6",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(search, decide),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "residual-trains-better",
            "Residual networks reach a (slightly) higher training accuracy than plain ones.",
            residual_against_plain(searches.accuracies),
            Greater(),
            "accuracy",
        ),
        Claim(
            "residual-tests-better",
            "Residual networks reach a (slightly) higher test accuracy than plain ones.",
            residual_against_plain(last_test_accuracies),
            Greater(),
            "accuracy",
        ),
        Claim(
            "plain-more-degenerate",
            "Plain networks have more degenerate eigenvalues than residual ones, at every measured epoch.",
            lambda frame, settings: comparisons.every_epoch(
                frame, settings, "degenerate", "plain", "residual"
            ),
            Greater(),
            "fraction",
        ),
    ),
    cost={"quick": 20, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
