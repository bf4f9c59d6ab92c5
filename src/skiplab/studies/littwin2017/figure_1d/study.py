"""Figure 1d's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.reproduction import Call, Claim, Greater, Ordered, Results, Study, scales
from skiplab.studies.littwin2017.figure_1d import evidence
from skiplab.studies.littwin2017.toy_settings import QUICK, SMOKE, ToySettings, strip_toys, toys
from skiplab.studies.littwin2017.toys import train

# What the paper leaves open, other than in the headline.
STRIP: dict[str, dict[str, Any]] = {
    "rate .01": {"rate": 0.01},
    "rate .03": {"rate": 0.03},
    "rate .5": {"rate": 0.5},
    "momentum .9, rate .01": {"rate": 0.01, "momentum": 0.9},
    "BN before ReLU": {"norm": "before"},
    evidence.UNIFORM: {"scale_init": "uniform"},
    "one λ per layer": {"scalar_scale": True},
    "1 + 10 layers": {"extra": True},
    "unit covariances, Bayes .69": {"covariances": "unit"},
    "unit covariances, Bayes .99": {"covariances": "unit", "separation": 0.65},
    "50 classes": {"classes": 50},
    "means far apart": {"separation": 1.0},
}
OTHER_DRAW = "another mixture"
RISING = ("rate .5", evidence.UNIFORM, "one λ per layer")  # whose scales still rose after 50 epochs
A_TWENTIETH = Greater(worth=0.05)  # of λ = 1, from which every scale starts


@dataclass(frozen=True)
class Settings(ToySettings):
    """``strip`` names the further conditions, of ``STRIP``; those of ``whole`` are trained for all epochs."""

    strip: tuple[str, ...] = (*STRIP, OTHER_DRAW)
    whole: tuple[str, ...] = RISING


def networks(results: Results) -> list[Call]:
    """Name the networks that decide, and those that differ from them by one choice."""
    settings = results.settings
    calls = [train.of(toys(settings), evidence.HEADLINE, stage=evidence.HEADLINE)]
    for name in settings.strip:
        changes = STRIP.get(name, {"draw": settings.seed + 1_000_000})
        whole = name in settings.whole
        calls.append(train.of(strip_toys(settings, whole=whole, **changes), name, stage=name))
    return calls


def figure(results: Results) -> Any:
    """λ by layer, over training, and under other choices."""
    from skiplab.studies.littwin2017.figure_1d.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/figure-1d",
    words=__file__,
    settings=scales(
        Settings,
        quick={**QUICK, "strip": ("rate .01", "unit covariances, Bayes .69", "50 classes")},
        smoke={**SMOKE, "strip": ("rate .01", "BN before ReLU")},
    ),
    stages=(networks,),
    figure=figure,
    claims=(
        Claim(
            "scales-grow",
            "From λ = 1 on, at learning rate .1, training increases |λ| of batch normalisation in the layers that "
            "have a skip.",
            evidence.grow,
            A_TWENTIETH,
            unit="mean |λ|",
            source="section 4.2",
        ),
        Claim(
            "scales-grow-steadily",
            "The increase of |λ| in the layers that have a skip is steady: later checkpoints have larger scales.",
            evidence.grow_steadily,
            Ordered(),
            unit="mean |λ|",
            source="ours",
        ),
        Claim(
            "first-layer-grows",
            "Training increases |λ| of batch normalisation in the layer that has no skip, the first.",
            evidence.first_grows,
            A_TWENTIETH,
            unit="mean |λ|",
            source="section 4.2",
        ),
        Claim(
            "first-layer-differs",
            "The scales of the first layer, which has no skip, behave differently from those of the others.",
            evidence.first_differs,
            A_TWENTIETH,
            unit="mean |λ|",
            source="section 4.2",
        ),
    ),
    cost={"smoke": 1.0, "quick": 25.0, "paper": 1500.0},
)
