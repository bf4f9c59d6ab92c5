"""Figure 1e's settings, claims and declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skiplab.reproduction import Call, Claim, Greater, Ordered, Results, Study, scales
from skiplab.studies.littwin2017.figure_1e import evidence
from skiplab.studies.littwin2017.toy_settings import QUICK, SMOKE, ToySettings, strip_toys, toys
from skiplab.studies.littwin2017.toys import train

RATE = 0.05  # ours; at .1, figure 1d's, some networks without normalisation may diverge
STRIP: dict[str, dict[str, Any]] = {
    evidence.SMALL: {"gain": 0.3},
    "rate .01": {"rate": 0.01},
    "rate .1": {"rate": 0.1},
    "unit covariances, Bayes .69": {"covariances": "unit"},
}
A_TWENTIETH = Greater(worth=math.log(1.05))
OF_THE_START = Greater(worth=0.05)


@dataclass(frozen=True)
class Settings(ToySettings):
    """``strip`` names the further conditions, of ``STRIP``."""

    strip: tuple[str, ...] = tuple(STRIP)


def networks(results: Results) -> list[Call]:
    """Name networks without normalisation: those that decide, and those that differ from them by one choice."""
    settings = results.settings
    own: dict[str, Any] = {"norm": None, "forces": True}
    deciding = train.of(toys(settings, rate=RATE, **own), evidence.HEADLINE, stage=evidence.HEADLINE)
    beside = {name: strip_toys(settings, **{"rate": RATE, **own, **STRIP[name]}) for name in settings.strip}
    return [deciding, *(train.of(other, name, stage=name) for name, other in beside.items())]


def figure(results: Results) -> Any:
    """‖w‖ over the iterations, and what moves it."""
    from skiplab.studies.littwin2017.figure_1e.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/figure-1e",
    words=__file__,
    settings=scales(
        Settings,
        quick={**QUICK, "strip": (evidence.SMALL, "rate .01")},
        smoke={**SMOKE, "strip": (evidence.SMALL,)},
    ),
    stages=(networks,),
    figure=figure,
    claims=(
        Claim(
            "norm-grows",
            "Without batch normalisation training (at learning rate .05, which is ours) increases the norm of the "
            "weights.",
            evidence.grows,
            A_TWENTIETH,
            unit="ln ‖w‖",
            source="section 4.2",
        ),
        Claim(
            "norm-grows-steadily",
            "The increase is steady: after the first epoch later checkpoints have larger norms.",
            evidence.grows_steadily,
            Ordered(),
            unit="‖w‖",
            source="ours",
        ),
        Claim(
            "force-grows-the-norm",
            "Summed over training, descent itself, −2μwᵀg, increases ‖w‖², apart from the steps' own squares μ²‖g‖².",
            evidence.force,
            OF_THE_START,
            unit="‖w‖² before training",
            source="ours",
        ),
    ),
    cost={"smoke": 1.0, "quick": 15.0, "paper": 450.0},
)
