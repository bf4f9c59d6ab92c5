"""Figure S4: the earlier version's figure 5, judged by what this caption says: residual nets converge faster."""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.reproduction import Claim, Evidence, Greater, Results
from skiplab.reproduction.study import Alias
from skiplab.studies.orhan2018.effects import TENTH

# Where the two networks start, by the words of a condition: those of equal norms are the earlier version's figure 5b.
STARTS = {
    "small random weights": {"plain": "small", "residual": "small"},
    "equal norms, plain a = b = [1, 1]/√2 + noise": {"plain": "a = b = ones", "residual": "a = b = modes"},
    "equal norms, plain a = [1, 1]/√2, b = u": {"plain": "a = ones, b = modes", "residual": "a = b = modes"},
}


def faster(results: Results) -> Iterator[Evidence]:
    """ln of the plain network's steps over the residual one's, one number per run.

    The caption names no start: ours is small random weights; the other two of the earlier version are further rows.
    """
    import numpy as np

    for words, starts in STARTS.items():
        plain, residual = (
            results.sample(
                "orhan2017/linear-descents",
                by="run",
                network=network,
                start=start,
                quantity="steps",
                dynamics="corrected",
            )
            for network, start in starts.items()
        )
        detail = f"medians {np.median(plain):.4g} and {np.median(residual):.4g} steps" if len(plain) else ""
        ratios = np.log(plain / residual) if len(plain) == len(residual) else []
        yield Evidence(words, [ratios], headline=words == next(iter(STARTS)), detail=detail)


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
