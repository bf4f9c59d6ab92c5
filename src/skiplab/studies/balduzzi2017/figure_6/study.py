"""Figure 6's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import (
    Call,
    Claim,
    Equivalent,
    Ordered,
    Results,
    Study,
    chunks,
    scales,
    subset,
)
from skiplab.studies.balduzzi2017.figure_6 import trials
from skiplab.studies.balduzzi2017.figure_6.evidence import LINEAR, accuracies, as_good, below_linear, falling
from skiplab.studies.balduzzi2017.figure_6.trials import ThinNetworks, ThinTraining

ONE_POINT = 0.01


@dataclass(frozen=True)
class Settings:
    """Depths are 4r + 2; ``together`` networks of a model and depth share a trial and its memory."""

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 10
    seed: int = 0
    models: tuple[str, ...] = tuple(trials.KINDS)
    depths: tuple[int, ...] = (6, 14, 30, 50, 98, 198)
    epochs: int = 100
    images: int | None = None
    test_images: int | None = None
    side: int | None = None
    batch_size: int = 128
    rate: float = 1e-3
    padding: int = 4
    batch_norm: bool = True
    window: int = 10
    patience: int = 5
    threshold: float = 0.01
    drop: float = 0.5
    mixed: bool = False
    test_epochs: tuple[int, ...] = (1, 5, 10, 20, 40, 60, 80)
    together: int = 10
    checkpoint_every: int | None = None

    @property
    def training(self) -> ThinTraining:
        """What all networks have in common."""
        return subset(ThinTraining, self)


QUICK = {
    "runs": 5,
    "depths": (6, 14, 50),
    "epochs": 6,
    "images": 1000,
    "side": 16,
    "batch_size": 50,
    "padding": 2,
    "test_epochs": (),
}
SMOKE = {
    "data": ("digits",),
    "runs": 2,
    "depths": (6, 10),
    "epochs": 1,
    "images": 40,
    "batch_size": 20,
    "padding": 1,
    "test_epochs": (),
}


def train(results: Results) -> list[Call]:
    """Name every model at every depth, the deepest first, so that no core waits for it at the end."""
    settings = results.settings
    common = {
        "training": settings.training,
        "test_epochs": tuple(epoch for epoch in settings.test_epochs if epoch < settings.epochs),
    }
    groups = chunks(run_seeds(settings.seed, settings.runs), settings.together)
    deepest_first = sorted(settings.depths, reverse=True)
    return [
        trials.train.of(
            subset(ThinNetworks, settings, data=data, model=model, depth=depth, seeds=seeds, **common),
            f"{data}, {model}, {depth} layers, {len(seeds)} networks from {seeds[0]}",
        )
        for depth, data, model, seeds in product(deepest_first, settings.data, settings.models, groups)
    ]


def figure(results: Results) -> Any:
    """Test accuracy by depth as in the paper, and beside it (ours) training accuracy in the last epoch."""
    from skiplab.studies.balduzzi2017.figure_6.plot import accuracy_by_depth, title

    settings = results.settings
    panels = {
        title(data, quantity): {
            model: {depth: accuracies(results, data, model, depth, quantity) for depth in settings.depths}
            for model in settings.models
        }
        for data, quantity in product(settings.data, ("test_accuracy", "accuracy"))
    }
    return accuracy_by_depth(panels, baseline=("linear classifier (paper)", LINEAR))


STUDY = Study(
    id="balduzzi2017/figure-6",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE),
    stages=(train,),
    figure=figure,
    claims=(
        Claim(
            "relu-falls-with-depth",
            "The test accuracy of ReLU networks falls as they get deeper.",
            falling("relu"),
            kind=Ordered(),
            unit="P(shallower > deeper)",
        ),
        Claim(
            "crelu-falls-with-depth",
            "The test accuracy of CReLU networks without looks-linear initialisation falls as they get deeper.",
            falling("crelu"),
            kind=Ordered(),
            unit="P(shallower > deeper)",
        ),
        Claim(
            "relu-below-linear",
            "The deepest ReLU networks (198 layers in the paper) do worse than a linear classifier's 40 %.",
            below_linear,
            unit="40 % − test accuracy",
        ),
        Claim(
            "looks-linear-as-residual",
            "With looks-linear initialisation a CReLU network performs as a residual one does (within a point).",
            as_good,
            kind=Equivalent(margin=ONE_POINT),
            unit="test accuracy",
        ),
    ),
    cost={"quick": 140, "paper": 28000},
    paper_device="one H200",
    in_tour=False,
)
