"""Figure S5: the earlier version's figure 6, judged by what this caption says: the plain net is left behind."""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.reproduction import Claim, Evidence, Greater, Results
from skiplab.reproduction.study import Alias


def left_behind(results: Results) -> Iterator[Evidence]:
    """log₁₀ of the plain network's time over that of each network with skips, one number per start."""
    import numpy as np

    settings = results.settings
    where = {
        "quantity": "time",
        "layers": settings.layers - 1,
        "spread": settings.spreads[0],
        "s": settings.s,
    }
    times = {
        network: results.sample("orhan2017/mode-race", by="run", network=network, **where)
        for network in ("plain", "residual", "hyper-residual")
    }
    plain = times.pop("plain")
    for network, others in times.items():
        detail = f"medians {np.median(plain):.3g} and {np.median(others):.3g}"
        yield Evidence(f"plain and {network}", [np.log10(plain / others)], detail=detail)


STUDY = Alias(
    "orhan2018/figure-S5",
    of="orhan2017/figure-6",
    words=__file__,
    claims=(
        Claim(
            "plain-does-not-converge",
            "In ten layers u does not converge in the plain network within ten times as long as it takes with skips.",
            left_behind,
            # Ours: the caption does not say how long it simulates; tenfold leaves others the first tenth of a window.
            kind=Greater(margin=-1.0),
            unit="powers of ten",
        ),
    ),
)
