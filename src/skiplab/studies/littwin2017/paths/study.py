"""Path lengths over training: settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.reproduction import Claim, Exact, Greater, Ordered, Results, Study, scales
from skiplab.studies.littwin2017.paths import evidence
from skiplab.studies.littwin2017.paths.networks import scaled, trained

WORTH = Greater(worth=0.05)  # of the depth p


@dataclass(frozen=True)
class Settings:
    """``runs`` small networks; ResNets of the sets in ``data`` are those of figures 2 and 3 at the same ``sizes``.

    ``resnet_runs``, where it is not 0, is how many of these ResNets there are instead of the figures' own number.
    Without ``resnets`` no image is needed, and ``data`` is one that is always at hand.
    """

    data: tuple[str, ...] = ("cifar10", "cifar100-fine")
    runs: int = 20
    seed: int = 0
    sizes: str = "paper"
    resnets: bool = True
    resnet_runs: int = 0
    samples: int = 512
    limited: bool = True


def figure(results: Results) -> Any:
    """Effective depth over training, shares by length, and what scales do."""
    from skiplab.studies.littwin2017.paths.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/paths",
    words=__file__,
    settings=scales(
        Settings,
        quick={"data": ("digits",), "resnets": False, "runs": 10, "sizes": "quick", "samples": 128},
        smoke={"data": ("digits",), "limited": False, "runs": 2, "sizes": "smoke", "samples": 20},
    ),
    stages=(trained, scaled),
    figure=figure,
    unit="effective depth / p",
    kind=WORTH,
    claims=(
        Claim(
            "starts-below-half",
            "Before training most comes through paths shorter than half the depth.",
            evidence.starts_below_half,
            source="abstract, section 3",
        ),
        Claim(
            "deeper-in-training",
            "Training makes paths longer, in ResNet-32 on both sets of images.",
            evidence.deeper,
            source="abstract, section 4, appendix C",
        ),
        Claim(
            "early-gradients-short",
            "With batch normalisation most of the gradient comes through paths shorter than half the depth, early in "
            "the training.",
            evidence.early_gradients,
            unit="share of the gradient",
            source="section 4.1",
        ),
        Claim(
            "scale-controls-depth",
            "Larger scales make paths longer: of all weights, or of λ in the layers that have a skip.",
            evidence.scale_controls,
            kind=Ordered(),
            source="section 4",
        ),
        Claim(
            "deeper-and-deeper",
            "Paths are the longer the later the epoch.",
            evidence.deeper_and_deeper,
            kind=Ordered(),
            source="ours",
        ),
        Claim(
            "common-scale-changes-nothing",
            "Multiplying every λ and every shift by the same number changes no share.",
            evidence.common_scale,
            kind=Exact(rounding=1e-9),
            unit="share",
            source="ours",
        ),
        Claim(
            "bn-main-mechanism",
            "Where paths become longer, more than half of it is due to batch normalisation's λ.",
            evidence.main_mechanism,
            kind=Greater(worth=0.025),
            source="abstract",
        ),
        Claim(
            "low-loss-before-deep",
            "Where paths become longer, the loss has fallen by 90 % before they have become longer by half.",
            evidence.low_before_deep,
            unit="share of the training",
            source="section 5",
        ),
    ),
    cost={"smoke": 3.0, "quick": 60.0, "paper": 2700.0},
    paper_device="one H200",
)
