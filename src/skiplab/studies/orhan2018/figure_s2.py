"""Figure S2: the best and the worst of 400 small networks, all of whose eigenvalues are known exactly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skiplab.experiments import best_and_worst
from skiplab.experiments import measured_networks as networks
from skiplab.experiments.best_and_worst import Settings, claim
from skiplab.reproduction.study import Study

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "accuracy": "training\naccuracy",
    "test_accuracy": "test\naccuracy",
    "negative": "negative\nfraction",
    "degenerate": "degenerate\nfraction",
    "norm": "mean\nnorm",
}
# Ours at quick scale: more epochs than other figures, since narrow plain networks hardly learn in 25, and a search
# that can tell gains apart.
QUICK: dict[str, Any] = networks.QUICK | {
    "runs": 100,
    "narrow_runs": 0,
    "other_runs": 100,
    "extremes": 10,
    "epochs": 50,
    "at": (0, 10, 50),
    "search_runs": 3,
    "search_epochs": 40,
}
SMOKE: dict[str, Any] = networks.SMOKE | {
    "runs": 4,
    "narrow_runs": 0,
    "extremes": 2,
    "shown_gains": (),
}
SHAPE: dict[str, Any] = {"narrow_depth": 10, "wide_runs": 0, "test": True}


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the paper's five panels, a row for each gain."""
    from skiplab.experiments.group_figures import panels

    return panels(frame, settings, COLUMNS)


STUDY = Study(
    id="orhan2018/figure-S2",
    words=__file__,
    settings={
        "smoke": Settings(**SMOKE | SHAPE | {"narrow_depth": 3}),
        "quick": Settings(**QUICK | SHAPE),
        "paper": Settings(**SHAPE, runs=400, other_runs=400, extremes=40),
    },
    stages=(best_and_worst.search, best_and_worst.decide),
    table=best_and_worst.table,
    figure=figure,
    claims=(
        claim(
            "best-less-degenerate",
            "Better performing networks have a smaller fraction of degenerate eigenvalues.",
            "degenerate",
            "worst",
            "fraction",
        ),
        claim(
            "best-more-negative",
            "Better performing networks have a larger fraction of negative eigenvalues.",
            "negative",
            "best",
            "fraction",
        ),
        claim(
            "best-larger-norms",
            "Better performing networks have larger mean norms of incoming weights.",
            "norm",
            "best",
            "norm",
        ),
    ),
    cost={"quick": 45, "paper": 450},
    paper_device="one H200",
)
