"""Figure 6: test accuracy against depth, with and without the looks-linear initialisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Equivalent, Evidence, Greater, Ordered
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.balduzzi2017 import convnets
from skiplab.studies.balduzzi2017.convnets import ThinNetworks, Training

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

ONE_POINT = 0.01
LINEAR = 0.4  # section 5.1: "the linear baseline of 40%"
TITLES = {"cifar10": "CIFAR-10", "digits": "Digits"}


@dataclass(frozen=True)
class Settings:
    """Depths are 4r + 2; ``together`` networks of a model and depth share a trial and its memory."""

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 10
    seed: int = 0
    models: tuple[str, ...] = tuple(convnets.KINDS)
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
    def training(self) -> Training:
        """What all networks have in common."""
        names = Training.__dataclass_fields__
        return Training(**{name: getattr(self, name) for name in names})


QUICK = Settings(
    runs=5,
    depths=(6, 14, 50),
    epochs=6,
    images=1000,
    side=16,
    batch_size=50,
    padding=2,
    test_epochs=(),
)
SMOKE = Settings(
    data=("digits",),
    runs=2,
    depths=(6, 10),
    epochs=1,
    images=40,
    batch_size=20,
    padding=1,
    test_epochs=(),
)


def train(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: every model at every depth, the deepest first, so that no core waits for it at the end."""
    seeds = run_seeds(settings.seed, settings.runs)
    groups = [
        tuple(seeds[start : start + settings.together]) for start in range(0, len(seeds), settings.together)
    ]
    return [
        convnets.train.of(
            ThinNetworks(
                data,
                model,
                depth,
                group,
                settings.training,
                tuple(epoch for epoch in settings.test_epochs if epoch < settings.epochs),
                settings.test_images,
                settings.checkpoint_every,
            ),
            f"{data}, {model}, {depth} layers, {len(group)} networks from {group[0]}",
        )
        for depth in sorted(settings.depths, reverse=True)
        for data in settings.data
        for model in settings.models
        for group in groups
    ]


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The one stage's rows, in an order that does not depend on how networks shared trials."""
    order = ["data", "model", "depth", "quantity", "seed", "epoch"]
    frame = tables[0].astype({"data": str, "model": str, "quantity": str, "network_id": str})
    return frame.sort_values(order, kind="stable", ignore_index=True)


# Evidence --------------------------------------------------------------------------------------------------


def accuracies(
    frame: pd.DataFrame, data: str, model: str, depth: int, quantity: str = "test_accuracy"
) -> np.ndarray:
    """One number a network: a quantity at the last epoch, in the order of seeds."""
    rows = frame[(frame["data"] == data) & (frame["model"] == model) & (frame["depth"] == depth)]
    rows = rows[rows["quantity"] == quantity]
    rows = rows[rows["epoch"] == rows["epoch"].max()].sort_values("seed")
    return rows["value"].to_numpy(dtype=float)


def falling(model: str, frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Test accuracies of a model from its deepest to its shallowest networks."""
    depths = sorted(settings.depths, reverse=True)
    where = f"depths {depths[-1]} to {depths[0]}"
    return [
        Evidence(f"{data}, {where}", [accuracies(frame, data, model, depth) for depth in depths])
        for data in settings.data
        if model in settings.models and len(depths) > 1
    ]


def below_linear(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """How far the deepest ReLU networks stay below the accuracy of a linear classifier."""
    deepest = max(settings.depths)
    return [
        Evidence(f"{data}, {deepest} layers", [LINEAR - accuracies(frame, data, "relu", deepest)])
        for data in settings.data
        if "relu" in settings.models
    ]


def as_good(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Test accuracies of looks-linear and residual networks; the deepest decide, the others are further rows."""
    return [
        Evidence(
            f"{data}, {depth} layers",
            [accuracies(frame, data, model, depth) for model in ("crelu-ll", "resnet")],
            headline=depth == max(settings.depths),
            detail="looks linear minus residual",
        )
        for data in settings.data
        for depth in sorted(settings.depths, reverse=True)
        if {"crelu-ll", "resnet"} <= set(settings.models)
    ]


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Test accuracy by depth as in the paper, and beside it (ours) training accuracy in the last epoch."""
    from skiplab.figures.accuracy_by_depth import accuracy_by_depth

    panels = {}
    for data in settings.data:
        for quantity, words in (("test_accuracy", "test"), ("accuracy", "training")):
            panels[f"{TITLES.get(data, data)}, {words}"] = {
                model: {depth: accuracies(frame, data, model, depth, quantity) for depth in settings.depths}
                for model in settings.models
            }
    return accuracy_by_depth(panels, baseline=("linear classifier (paper)", LINEAR))


STUDY = Study(
    id="balduzzi2017/figure-6",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(train,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "relu-falls-with-depth",
            "The test accuracy of ReLU networks falls as they get deeper.",
            lambda frame, settings: falling("relu", frame, settings),
            Ordered(),
            "P(shallower > deeper)",
        ),
        Claim(
            "crelu-falls-with-depth",
            "The test accuracy of CReLU networks without looks-linear initialisation falls as they get deeper.",
            lambda frame, settings: falling("crelu", frame, settings),
            Ordered(),
            "P(shallower > deeper)",
        ),
        Claim(
            "relu-below-linear",
            "The deepest ReLU networks (198 layers in the paper) do worse than a linear classifier's 40 %.",
            below_linear,
            Greater(),
            "40 % − test accuracy",
        ),
        Claim(
            "looks-linear-as-residual",
            "With looks-linear initialisation a CReLU network performs as a residual one does (within a point).",
            as_good,
            Equivalent(margin=ONE_POINT),
            "test accuracy",
        ),
    ),
    cost={"quick": 140, "paper": 28000},
    paper_device="one H200",
    in_tour=False,
)
