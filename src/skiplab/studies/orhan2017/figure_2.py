"""Figure 2: (c) how much of the rescaling symmetry trained plain, residual and hyper-residual networks have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skiplab.experiments import networks
from skiplab.experiments import old_gains as searches
from skiplab.reproduction.claim import Claim, Evidence, Exact, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import rescaled_networks
from skiplab.studies.orhan2017.rescaled_networks import RescalingSettings as Settings
from skiplab.studies.orhan2017.rescaled_networks import values

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

MODELS = ("plain", "residual", "hyper-residual")
PLAIN, RESIDUAL, HYPER = [(model, "identity") for model in MODELS]
# Tables keep float32; the measurement itself is in float64. Accuracy moves by whole samples, at least 1e-4 of it.
ROUNDING = 1e-6
# Outputs of a 20-layer network: float64's 1e-16, enlarged where a sum nearly cancels.
OUTPUT_ROUNDING = 1e-10

QUICK = Settings(**networks.QUICK | {"runs": 8}, other_runs=5, rescaled_on=2000)
SMOKE = Settings(**networks.SMOKE, other_runs=2, rescaled_on=100, pairs=3)


def search(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """First stage: each model's best gain, on seeds of their own."""
    return rescaled_networks.search(settings, MODELS)


def decide(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Second stage: the runs that decide, trained and then rescaled."""
    return rescaled_networks.decide(settings, tables[0], MODELS)


def whole(frame: pd.DataFrame, settings: Settings, quantity: str, by: float) -> Iterator[Evidence]:
    """How far a quantity of plain networks is from what a whole symmetry gives."""
    for condition, headline, (rows,) in searches.each_condition(frame, settings, [PLAIN]):
        yield Evidence(condition, [values(rows, quantity) - by], headline=headline)


def compare(
    frame: pd.DataFrame, settings: Settings, more: tuple[str, str], less: tuple[str, str]
) -> Iterator[Evidence]:
    """Ratios of two models, whose accuracies before are told since they limit how far a ratio can fall."""
    for condition, headline, both in searches.each_condition(frame, settings, [more, less]):
        before = " and ".join(f"{values(rows, 'before').mean():.3f}" for rows in both if len(rows))
        samples = [values(rows) for rows in both]
        detail = f"accuracies before: {more[0]} and {less[0]} {before}" if before else ""
        yield Evidence(condition, samples, headline=headline, detail=detail)


def above_chance(rows: pd.DataFrame) -> np.ndarray:
    """How much of its accuracy above chance a run keeps; one that has none to lose counts as absent."""
    before, chance = values(rows, "before"), values(rows, "chance")
    learned = before > chance
    return ((values(rows) * before - chance) / (before - chance).clip(1e-9))[learned]


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Ratios at best gains (as the paper's bars), at every gain, and by the distance of the two layers."""
    from skiplab.experiments.old_gain_figures import TITLES
    from skiplab.figures.symmetries import rescaling_panels

    columns = {}
    for data in settings.data:
        best = {model: searches.best_gain(frame, data, model) for model in MODELS}

        def rows(model: str, gain: float, data: str = data) -> pd.DataFrame:
            return searches.deciding(frame, data, model, gain)

        at_best = {model: rows(model, gain) for model, gain in best.items()}
        near = {
            model: found[found["quantity"] == "rescaling_at_distance"].groupby("layer")["value"]
            for model, found in at_best.items()
        }
        columns[TITLES.get(data, data)] = (
            {model: values(found) for model, found in at_best.items()},
            {
                model: {f"{gain:.3g}": values(rows(model, gain)) for gain in settings.gains}
                for model in MODELS
            },
            {
                model: (
                    part.mean().index.to_numpy(float),
                    part.mean().to_numpy(float),
                    part.sem().to_numpy(float),
                )
                for model, part in near.items()
            },
        )
    return rescaling_panels(columns)


def _joined(_: Any, tables: Any) -> Any:
    import pandas as pd

    return pd.concat(tables, ignore_index=True)


STUDY = Study(
    id="orhan2017/figure-2",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(search, decide),
    table=_joined,
    figure=figure,
    claims=(
        Claim(
            "plain-whole",
            "Plain networks keep all of their accuracy: the ratio is 1 in every run.",
            lambda frame, settings: whole(frame, settings, "rescaling", 1.0),
            Exact(rounding=ROUNDING),
            "largest |ratio − 1|",
        ),
        Claim(
            "plain-outputs",
            "The outputs of plain networks do not change at all, up to rounding, for any pair drawn.",
            lambda frame, settings: whole(frame, settings, "rescaling_change", 0.0),
            Exact(rounding=OUTPUT_ROUNDING),
            "largest relative change",
        ),
        Claim(
            "residual-less-than-plain",
            "Residual networks have less rescaling symmetry than plain ones.",
            lambda frame, settings: compare(frame, settings, PLAIN, RESIDUAL),
            Greater(),
            "ratio",
        ),
        Claim(
            "hyper-less-than-residual",
            "Hyper-residual networks have less rescaling symmetry than residual ones (p < .01).",
            lambda frame, settings: compare(frame, settings, RESIDUAL, HYPER),
            Greater(),
            "ratio",
        ),
        Claim(
            "hyper-less-above-chance",
            "Ours: hyper-residual networks keep less of their accuracy above chance than residual ones.",
            lambda frame, settings: searches.compare(frame, settings, RESIDUAL, HYPER, above_chance),
            Greater(),
            "ratio above chance",
        ),
    ),
    cost={"quick": 40, "paper": 350},
    paper_device="one H200",
    alpha=0.01,
    in_tour=False,
)
