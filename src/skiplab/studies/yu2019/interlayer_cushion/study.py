"""The interlayer cushion's settings, claims and declaration; its trained networks are figure 12's."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Greater, Results, Study, Value, scales
from skiplab.studies.yu2019.full_networks import PREFIX, QUICK_FULL, SMOKE_FULL, FullSettings, train_full
from skiplab.studies.yu2019.interlayer_cushion import evidence
from skiplab.studies.yu2019.interlayer_cushion.trials import Untrained, untrained_cushions
from skiplab.studies.yu2019.pairs import PLAIN, QUICK, RESIDUAL, SMOKE

A_TENTH = Greater(worth=math.log(1.1))  # of the cushion
QUARTER = Value(tolerance=0.25)
A_DECADE = Value(tolerance=-1 / math.log10(evidence.PRINTED[PLAIN]))
THOUSANDFOLD = Greater(worth=3.0)


@dataclass(frozen=True)
class Settings(FullSettings):
    """Full networks, trained and, at the paper's size on any scale but smoke, untrained."""

    grid_depth: int = 20
    grid_filters: tuple[int, ...] = (16, 32, 64)
    grid_images: int = 16
    batch_sizes: tuple[int, ...] = (1, 2, 4, 16)
    probes: int = 32


def draw_untrained(results: Results) -> list[Call]:
    """Name the measurements before training, one trial per network, so that all cores have some."""
    settings = results.settings
    return [
        untrained_cushions.of(
            Untrained(
                data=settings.data[0],
                model=PREFIX + model,
                seeds=(seed,),
                depth=settings.grid_depth,
                filters=settings.grid_filters,
                images=settings.grid_images,
                batch_sizes=settings.batch_sizes,
                probes=settings.probes,
            ),
            f"untrained {model}, seed {seed}",
        )
        for seed in run_seeds(settings.seed, settings.runs)
        for model in (PLAIN, RESIDUAL)
    ]


def figure(results: Results) -> Any:
    """Cushions of trained networks by block, and of untrained ones over modes and batches."""
    from skiplab.studies.yu2019.interlayer_cushion.plot import draw

    return draw(results)


# Figure 12 takes all but the number of simplified networks from the same places.
SHARED = ("runs", "filters", "images", "side", "batch_size", "padding", "mixed", "test_images", "flow_images")

STUDY = Study(
    id="yu2019/interlayer-cushion",
    words=__file__,
    settings=scales(
        Settings,
        quick={name: QUICK[name] for name in SHARED} | QUICK_FULL,
        smoke={name: SMOKE[name] for name in (*SHARED, "data")}
        | SMOKE_FULL
        | {"grid_depth": 8, "grid_filters": (2, 2, 4), "grid_images": 2, "batch_sizes": (1, 2), "probes": 4},
    ),
    stages=(draw_untrained, train_full),
    figure=figure,
    unit="ln of the cushion",
    kind=A_TENTH,
    source="section 5",
    claims=(
        Claim(
            "residual-larger-cushion",
            "Blocks of full residual networks have larger interlayer cushions than the corresponding plain blocks.",
            evidence.larger_cushions,
        ),
        Claim(
            "printed-residual",
            "The fifth residual block has the printed cushion, .20.",
            evidence.printed(RESIDUAL),
            kind=QUARTER,
            unit="cushion",
        ),
        Claim(
            "printed-plain",
            "The fifth plain block has the printed cushion, 2.7e-7, a decade more or less.",
            evidence.printed(PLAIN, decades=True),
            kind=A_DECADE,
            unit="log₁₀ of the cushion",
        ),
        Claim(
            "vanishes-only-alone",
            "A plain block's cushion is thousands of times smaller in training mode with batches of one image, or "
            "with a whole batch as one vector, than in any other way of measuring it.",
            evidence.vanishes_alone,
            kind=THOUSANDFOLD,
            unit="log₁₀ of the cushion",
            source="ours",
        ),
        Claim(
            "larger-before-training",
            "Residual blocks have the larger cushion before training already.",
            evidence.before_training,
            source="ours",
        ),
    ),
    cost={"smoke": 1.5, "quick": 60.0, "paper": 800.0},
    paper_device="one H200",
)
