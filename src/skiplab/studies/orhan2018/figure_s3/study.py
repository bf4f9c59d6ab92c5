"""Figure S3 as a study: is the mixture biased as the paper says, and does it go with the exact fractions?"""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.experiments.networks import SQRT2
from skiplab.reproduction import Claim, Greater, Study, scales
from skiplab.studies.orhan2018.effects import SHARE, SLOPE
from skiplab.studies.orhan2018.figure_s3.evidence import FRACTIONS, bias, relation
from skiplab.studies.orhan2018.figure_s3.plot import figure
from skiplab.studies.orhan2018.figure_s3.trials import Settings, measure

QUICK = {
    "runs": 5,
    "gains": (0.3, SQRT2),
    "widths": (16,),
    "images": 2000,
    "components": 32,
    "epochs": 25,
    "batch_size": 100,
    "at": (3, 25),
    "samples": 500,
    "probes": 4,
    "max_steps": 80,
}
SMOKE = {
    "data": ("digits",),
    "runs": 2,
    "gains": (SQRT2,),
    "widths": (4,),
    "depth": 3,
    "images": 100,
    "epochs": 1,
    "batch_size": 50,
    "at": (0, 1),
    "samples": 40,
    "probes": 2,
    "steps": 4,
    "max_steps": 4,
}


def _claims() -> Iterator[Claim]:
    for fraction, sign, verb in (("degenerate", -1.0, "underestimates"), ("negative", 1.0, "overestimates")):
        yield Claim(
            f"mixture-{verb}-{fraction}",
            f"The mixture {verb} the fraction of {fraction} eigenvalues.",
            bias(fraction, sign),
            kind=Greater(worth=SHARE),
            unit="fraction",
        )
    for fraction in FRACTIONS:
        yield Claim(
            f"{fraction}-linear",
            f"The estimated fraction of {fraction} eigenvalues rises with the exact one.",
            relation(fraction),
            kind=Greater(worth=SLOPE),
            unit="slope",
        )


STUDY = Study(
    id="orhan2018/figure-S3",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE),
    stages=(measure,),
    figure=figure,
    claims=tuple(_claims()),
    # The caption says all of it of the authors' mixture; ours is a guess at what that was.
    source="ours",
    cost={"quick": 45.0, "paper": 1500.0},
    paper_device="one H200",
    in_tour=False,
)
