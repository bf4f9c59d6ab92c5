"""Figure S4: the earlier version's figure 5, judged by what this caption says: residual nets converge faster."""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.reproduction import Claim, Evidence, Greater, Results
from skiplab.reproduction.study import Alias
from skiplab.studies.orhan2018.effects import TENTH


def faster(results: Results) -> Iterator[Evidence]:
    """ln of the plain network's steps over the residual one's, both from small random weights, one number per run."""
    import numpy as np

    where = {"quantity": "steps", "start": "small", "dynamics": "corrected"}
    plain, residual = (
        results.sample("orhan2017/linear-descents", by="run", network=network, **where)
        for network in ("plain", "residual")
    )
    detail = f"medians {np.median(plain):.4g} and {np.median(residual):.4g} steps"
    yield Evidence("small random weights", [np.log(plain / residual)], detail=detail)


STUDY = Alias(
    "orhan2018/figure-S4",
    of="orhan2017/figure-5",
    words=__file__,
    claims=(
        Claim(
            "residual-faster",
            "The weights converge faster in the residual linear network than in the plain one.",
            faster,
            kind=Greater(worth=TENTH),
            unit="log ratio of steps",
        ),
    ),
)
