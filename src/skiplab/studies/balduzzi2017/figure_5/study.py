"""Figure 5's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Equivalent, Greater, Results, Study, scales, subset
from skiplab.studies.balduzzi2017.figure_5.evidence import (
    beyond,
    disappears,
    faster,
    left,
    more_apparent,
    slowed,
    visible,
)
from skiplab.studies.balduzzi2017.figure_5.trials import (
    PLAIN,
    WHITE,
    ConvnetGradients,
    blocks,
    measure,
    structure,
)

RANK = Greater(worth=0.05)  # a twentieth of what white noise has
NORM = Greater(worth=0.095)  # a tenth of the norm, in logarithms
SEEN = 0.05  # of the variance: blocks then differ by .23 deviations of the entries within them
EXPLAINED = "share of the variance between entries that blocks explain"


@dataclass(frozen=True)
class Settings:
    """Depths count convolutions in modules; a run is a set of networks and minibatches of its own."""

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 30
    seed: int = 0
    depths: tuple[int, ...] = (2, 4, 10, 24, 50)
    betas: tuple[float, ...] = (1.0, 0.1)
    gradients: tuple[str, ...] = ("loss", "sum")
    filters: int = 16
    samples: int = 256
    minibatches: int = 1
    clusters: int = 10
    cluster_runs: int = 30
    images: int | None = None
    side: int | None = None

    @property
    def models(self) -> tuple[str, ...]:
        """The networks compared: without skips, and with them at each β."""
        return (PLAIN, *(f"resnet-{beta:g}" for beta in self.betas))

    @property
    def pictured(self) -> tuple[str, str]:
        """The networks of panels a and b: without skips, and with the smallest β."""
        return PLAIN, f"resnet-{min(self.betas):g}"


def stage(results: Results) -> list[Call]:
    """Name a trial per model and run, of which the first give the pictures; further runs have their structure."""
    settings = results.settings
    pictured = settings.pictured
    calls = []
    for data in settings.data:
        for run, seed in enumerate(run_seeds(settings.seed, settings.runs)):
            for model in settings.models:
                clusters = settings.clusters if run == 0 and model in pictured else 0
                own = {"data": data, "model": model, "seed": seed, "clusters": clusters}
                wanted = subset(ConvnetGradients, settings, **own)
                calls.append(measure.of(wanted, f"{data}, {model}, run {run}"))
        first, *_ = seeds = run_seeds(settings.seed, settings.runs + settings.cluster_runs)
        calls += [
            structure.of(clusters_of(settings, data, model, first), f"{data}, {model}, clusters")
            for model in pictured
        ]
        # Other networks than those in which an earlier measure looked for structure.
        calls += [
            blocks.of(clusters_of(settings, data, model, seed), f"{data}, {model}, blocks of run {run}")
            for run, seed in enumerate(seeds[settings.runs :])
            for model in (*pictured, WHITE)
        ]
    return calls


def clusters_of(settings: Settings, data: str, model: str, seed: int) -> ConvnetGradients:
    """One model's networks of a seed, whose gradients are clustered."""
    own = {"data": data, "model": model, "seed": seed, "gradients": settings.gradients[:1]}
    return subset(ConvnetGradients, settings, **own)


def figure(results: Results) -> Any:
    """Covariances above, relative effective rank and normalised norm by depth below, as in the paper."""
    from skiplab.studies.balduzzi2017.figure_5.plot import draw

    return draw(results)


STUDY = Study(
    id="balduzzi2017/figure-5",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 10, "cluster_runs": 5, "gradients": ("loss",), "images": 5000, "side": 16},
        smoke={
            "data": ("digits",),
            "runs": 2,
            "depths": (2, 4),
            "gradients": ("loss",),
            "filters": 4,
            "samples": 24,
            "clusters": 3,
            "cluster_runs": 2,
            "images": 60,
        },
    ),
    stages=(stage,),
    figure=figure,
    source="section 4",
    claims=(
        Claim(
            "structure-in-shallow-networks",
            "Spatial structure is visible in both two-layer networks: blocks of clusters explain more of the matrix "
            "than clustering makes them explain of white noise.",
            visible,
            kind=Greater(worth=SEEN),
            unit=EXPLAINED,
        ),
        Claim(
            "structure-more-apparent-in-resnets",
            "In two-layer networks the structure is more apparent in the resnet: blocks explain more of the matrix.",
            more_apparent,
            kind=Greater(worth=SEEN),
            unit=EXPLAINED,
        ),
        Claim(
            "structure-gone-without-skips",
            "In the feedforward network the structure disappears with depth: blocks explain less of the matrix at 50 "
            "layers than at 2, by more than clustering alone makes of white noise.",
            disappears,
            kind=Greater(worth=SEEN),
            unit=EXPLAINED,
        ),
        Claim(
            "no-structure-in-deep-feedforward-networks",
            "In the feedforward network of 50 layers blocks explain no more of the matrix than permuted ones, "
            "whether or not they did at 2 layers.",
            left(0),
            kind=Equivalent(margin=SEEN),
            unit=EXPLAINED,
            source="ours",
        ),
        Claim(
            "structure-left-with-skips",
            "In the resnet the structure remains apparent at 50 layers: blocks explain more of the matrix than "
            "permuted ones.",
            left(1),
            kind=Greater(worth=SEEN),
            unit=EXPLAINED,
        ),
        Claim(
            "rank-grows-faster-without-skips",
            "The relative effective rank of gradients grows faster with depth without skip connections; how much is "
            "“much faster” the paper does not say.",
            faster("relative_rank"),
            kind=RANK,
            unit="relative effective rank",
        ),
        Claim(
            "rank-grows-beyond-ten-layers",
            "Without skip connections the rank still grows beyond 10 layers.",
            beyond,
            kind=RANK,
            unit="relative effective rank",
            source="ours",
        ),
        Claim(
            "smaller-beta-slows-growth",
            "In residual networks a smaller β slows the growth of the effective rank.",
            slowed,
            kind=RANK,
            unit="relative effective rank",
        ),
        Claim(
            "norm-decays-faster-without-skips",
            "The normalised norm of the mean gradient decays more rapidly with depth without skip connections than "
            "in resnets; how much is “much more rapidly” the paper does not say.",
            faster("mean_norm"),
            kind=NORM,
            unit="log norm",
        ),
    ),
    cost={"quick": 50, "paper": 120},
    paper_device="one H200",
    in_tour=False,
)
