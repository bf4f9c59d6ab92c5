"""The transform's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Greater, Results, Study, scales, subset
from skiplab.studies.yu2019.transferred import DECAYS, MATCHING, NO_DECAY
from skiplab.studies.yu2019.transform import evidence
from skiplab.studies.yu2019.transform.trials import (
    FAMILIES,
    INITS,
    SameFunction,
    SameSteps,
    same_function,
    same_steps,
)

ROUNDING = 1e-12  # of forward and backward passes in float64, relative
DECADE = Greater(worth=1.0)  # pairs part if they differ by ten times what counts as equal


@dataclass(frozen=True)
class Settings:
    """Pairs of every kind of network and depth; batches are small, for equality needs no more."""

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 5
    seed: int = 0
    depths: tuple[int, ...] = (20, 32, 44)
    images: int = 20
    side: int | None = None
    batch_size: int = 4
    epochs: int = 4
    rate: float = 1e-2
    momentum: float = 0.9
    strength: float = 1e-4


def compare(results: Results) -> list[Call]:
    """Name comparisons per kind of network, depth and initialisation, and training per decay; long ones first."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = []
    for name, depth, family in product(settings.data, sorted(settings.depths, reverse=True), FAMILIES):
        own: dict[str, Any] = {"data": name, "depth": depth, "family": family, "seeds": seeds}
        words = f"{family}, {depth} layers"
        calls += [
            same_steps.of(subset(SameSteps, settings, decay=decay, **own), f"{words}, decay {decay}")
            for decay in DECAYS
        ]
        calls += [
            same_function.of(subset(SameFunction, settings, init=init, **own), f"{words}, {init}")
            for init in INITS
        ]
    return calls


def figure(results: Results) -> Any:
    """Differences before training by quantity and depth, and of parameters over the steps of training."""
    from skiplab.studies.yu2019.transform.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/transform",
    words=__file__,
    settings=scales(
        Settings,
        quick={"depths": (8, 14), "side": 16},
        smoke={"data": ("digits",), "runs": 2, "depths": (5,), "images": 4, "epochs": 2},
    ),
    stages=(compare,),
    figure=figure,
    unit="largest relative difference",
    kind=Exact(rounding=ROUNDING),
    claims=(
        Claim(
            "inverse",
            "T⁻¹ undoes T, and T undoes T⁻¹.",
            evidence.before("residual", "plain"),
            source="ours",
        ),
        Claim(
            "same-blocks",
            "Adding 1 to the ID entries makes a plain block compute what a residual block does, also where blocks "
            "stride or change the number of channels.",
            evidence.blocks,
            source="equation 1",
        ),
        Claim(
            "same-function",
            "A residual network and the plain network that T makes of it are one function.",
            evidence.before("output"),
            source="section 3",
        ),
        Claim(
            "equal-parameters",
            "Both have equally many parameters.",
            evidence.before("parameters"),
            kind=Exact(),
            unit="parameters",
            source="ours",
        ),
        Claim(
            "equal-gradients",
            "The gradient of the risk is the same in both.",
            evidence.before("gradient"),
            source="section 4.1",
        ),
        Claim(
            "equal-costs",
            "With the penalty ‖T⁻¹(p)‖² for the plain network, costs and their gradients are the same too.",
            evidence.before("cost", "cost gradient"),
            source="section 4.1",
        ),
        Claim(
            "same-training",
            "Trained on the same batches without weight decay, both stay equivalent at each of 20 steps.",
            evidence.stays(NO_DECAY),
            kind=Exact(rounding=evidence.EQUAL),
            source="section 4.1",
        ),
        Claim(
            "same-training-with-decay",
            "Trained with weight decay, ‖r‖² in the residual and ‖T⁻¹(p)‖² in the plain network, both stay "
            "equivalent at each of 20 steps.",
            evidence.stays(MATCHING),
            kind=Exact(rounding=evidence.EQUAL),
            source="section 4.1",
        ),
        Claim(
            "another-decay-parts",
            "With the usual penalty ‖p‖² in the plain network the two part.",
            evidence.parts,
            kind=DECADE,
            unit="decades above 1e-9",
            source="ours",
        ),
    ),
    cost={"smoke": 1.5, "quick": 30.0, "paper": 300.0},
)
