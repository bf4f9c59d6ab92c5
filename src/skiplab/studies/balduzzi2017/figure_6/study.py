"""Figure 6's settings, claims and declaration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import (
    Call,
    Claim,
    Greater,
    Results,
    Study,
    Value,
    chunks,
    scales,
    subset,
)
from skiplab.studies.balduzzi2017.figure_6 import trials
from skiplab.studies.balduzzi2017.figure_6.evidence import (
    BASELINE,
    RECTIFIERS,
    above_prelu,
    accuracies,
    as_good,
    baseline,
    below_linear,
    best_rate,
    falling,
    trains_deeper,
)
from skiplab.studies.balduzzi2017.figure_6.trials import ThinNetworks, ThinTraining

ONE_POINT = Greater(worth=0.01)  # of test accuracy
COMPARABLE = Greater(margin=0.03)  # no worse by three points: "comparably" is less than "as well"


@dataclass(frozen=True)
class Settings:
    """Depths are 4r + 2; ``together`` networks of a model and depth share a trial and its memory.

    ``rates`` are learning rates to choose from for each model and depth, on ``search_runs`` further networks; without
    any, all have ``rate``. At ``further_rates`` the deepest ReLU and CReLU networks are trained besides. Models in
    ``unnormalised`` have no batch normalisation even if the others have it.
    """

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
    rates: tuple[float, ...] = ()
    search_runs: int = 5
    further_rates: tuple[float, ...] = ()
    padding: int = 4
    batch_norm: bool = True
    unnormalised: tuple[str, ...] = ()
    window: int = 10
    patience: int = 5
    threshold: float = 0.01
    drop: float = 0.5
    mixed: bool = False
    test_epochs: tuple[int, ...] = (1, 5, 10, 20, 40, 60, 80)
    together: int = 10
    checkpoint_every: int | None = None

    def training(self, model: str, rate: float) -> ThinTraining:
        """How a model's networks are trained."""
        batch_norm = self.batch_norm and model not in self.unnormalised
        return subset(ThinTraining, self, rate=rate, batch_norm=batch_norm)


QUICK = {
    "runs": 5,
    "models": ("crelu-ll", "crelu", "resnet", "relu"),  # the figure's
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
    "rates": (1e-3, 3e-3),
    "search_runs": 2,
    "further_rates": (1e-4,),
    "padding": 1,
    "test_epochs": (),
}


def search(results: Results) -> list[Call]:
    """Name networks of every model, depth and learning rate, on seeds that take no part in a verdict.

    Where there is nothing to choose from, the networks that decide are named at once.
    """
    settings = results.settings
    if not settings.rates:
        return deciding(results)
    seeds = run_seeds(settings.seed, settings.search_runs, role="search")
    return [
        call_of(settings, data, model, depth, rate, seeds, "search")
        for depth, data, model in conditions(settings)
        for rate in settings.rates
    ]


def train(results: Results) -> list[Call]:
    """Name the networks that decide, at the learning rates that were chosen."""
    return deciding(results) if results.settings.rates else []


def further(results: Results) -> list[Call]:
    """Name the deepest networks with neither skips nor the looks-linear initialisation, at further learning rates."""
    settings = results.settings
    depth, groups = max(settings.depths), chunks(run_seeds(settings.seed, settings.runs), settings.together)
    models = [model for model in RECTIFIERS if model in settings.models]
    return [
        call_of(settings, data, model, depth, rate, seeds, "further")
        for data, model, rate, seeds in product(settings.data, models, settings.further_rates, groups)
    ]


def deciding(results: Results) -> list[Call]:
    """Every model at every depth, and the linear baseline."""
    settings = results.settings
    groups = chunks(run_seeds(settings.seed, settings.runs), settings.together)
    calls = [
        call_of(settings, data, trials.LINEAR, 1, settings.rate, seeds)
        for data in settings.data
        for seeds in groups
    ]
    return calls + [
        call_of(settings, data, model, depth, best_rate(results, data, model, depth), seeds)
        for depth, data, model in conditions(settings)
        for seeds in groups
    ]


def conditions(settings: Settings) -> Iterator[tuple[int, str, str]]:
    """Depth, data and model, the deepest first, so that no core waits for it at the end."""
    return product(sorted(settings.depths, reverse=True), settings.data, settings.models)


def call_of(
    settings: Settings,
    data: str,
    model: str,
    depth: int,
    rate: float,
    seeds: Sequence[int],
    stage: str = "train",
) -> Call:
    """Name some networks of one model and depth at one learning rate, and what their rows are for."""
    own = {
        "training": settings.training(model, rate),
        "test_epochs": tuple(epoch for epoch in settings.test_epochs if epoch < settings.epochs),
        "seeds": tuple(seeds),
    }
    wanted = subset(ThinNetworks, settings, data=data, model=model, depth=depth, **own)
    label = f"{data}, {model}, {depth} layers, {len(seeds)} networks from {seeds[0]}"
    if stage != "train":
        label = f"{stage}, rate {rate:g}, {label}"
    return trials.train.of(wanted, label, stage=stage)


def figure(results: Results) -> Any:
    """Test accuracy by depth as in the paper, and beside it (ours) training accuracy in the last epoch."""
    from skiplab.studies.balduzzi2017.figure_6.plot import accuracy_by_depth, title

    settings = results.settings
    runs = f"{settings.epochs} epochs, {settings.runs} networks"
    panels = {
        f"{title(data, quantity)} ({runs})": {
            model: {depth: accuracies(results, data, model, depth, quantity) for depth in settings.depths}
            for model in settings.models
        }
        for data, quantity in product(settings.data, ("test_accuracy", "accuracy"))
    }
    return accuracy_by_depth(panels, baseline=("linear classifier (paper)", BASELINE))


STUDY = Study(
    id="balduzzi2017/figure-6",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE),
    stages=(search, train, further),
    figure=figure,
    source="section 5.1",
    unit="test accuracy",
    claims=(
        Claim(
            "looks-linear-trains-deeper",
            "The looks-linear initialisation allows to train significantly deeper networks: the deepest CReLU "
            "networks (198 layers in the paper) reach a higher accuracy than CReLU and ReLU networks without it. In "
            "the published run all had 20 epochs at one learning rate, .001.",
            trains_deeper,
            kind=ONE_POINT,
        ),
        Claim(
            "rectifiers-fall-with-depth",
            "ReLU and CReLU networks perform steadily worse with depth: from each of the figure's depths to the next "
            "they lose accuracy.",
            falling,
            kind=ONE_POINT,
        ),
        Claim(
            "relu-below-linear",
            "The deepest ReLU networks (198 layers in the paper) do worse than a linear classifier's 40 %. In the "
            "published run they had 20 epochs at one learning rate, .001.",
            below_linear,
            kind=ONE_POINT,
            unit="40 % − test accuracy",
        ),
        Claim(
            "linear-baseline",
            "A linear classifier is right on about 40 % of the test images, within four points, which is ours.",
            baseline,
            kind=Value(),  # 10 % of the paper's value
            source="ours",
        ),
        Claim(
            "crelu-above-prelu",
            "The looks-linear initialisation is more effective on CReLU than on PReLU networks.",
            above_prelu,
            kind=ONE_POINT,
            source="section 5",
        ),
        Claim(
            "looks-linear-as-residual",
            "With looks-linear initialisation a CReLU network performs comparably to a residual one: at the largest "
            "depth, each at its best learning rate, it is at most three points worse.",
            as_good,
            kind=COMPARABLE,
        ),
    ),
    cost={"quick": 140, "paper": 28000},
    paper_device="one H200",
    in_tour=False,
)
