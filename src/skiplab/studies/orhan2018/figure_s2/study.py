"""Figure S2 as a study: what is compared between the best networks and the worst."""

from __future__ import annotations

from typing import Any

from skiplab.experiments import measured_networks
from skiplab.experiments.gains import ONE_POINT
from skiplab.reproduction import Claim, Greater, Study, scales
from skiplab.studies.orhan2018.effects import NORM, SHARE
from skiplab.studies.orhan2018.figure_s2.evidence import more_of, peaks, since_start
from skiplab.studies.orhan2018.figure_s2.plot import figure
from skiplab.studies.orhan2018.figure_s2.trials import Settings, decide, search

# Ours at quick scale: more epochs than other figures, since narrow plain networks hardly learn in 25, and a search
# that can tell gains apart.
QUICK: dict[str, Any] = {
    **measured_networks.QUICK,
    "runs": 100,
    "narrow_depth": 10,
    "narrow_runs": 0,
    "other_runs": 100,
    "extremes": 10,
    "epochs": 50,
    "at": (0, 10, 50),
    "search_runs": 3,
    "search_epochs": 40,
}
SMOKE: dict[str, Any] = {
    **measured_networks.SMOKE,
    "runs": 4,
    "narrow_runs": 0,
    "wide_runs": 0,
    "extremes": 2,
    "shown_gains": (),
}

STUDY = Study(
    id="orhan2018/figure-S2",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE),
    stages=(search, decide),
    figure=figure,
    claims=(
        Claim(
            "best-less-degenerate",
            "Better performing networks have a smaller fraction of degenerate eigenvalues.",
            more_of("degenerate", in_the="worst"),
            kind=Greater(worth=SHARE),
            unit="fraction",
        ),
        Claim(
            "best-more-negative",
            "Better performing networks have a larger fraction of negative eigenvalues.",
            more_of("negative", in_the="best"),
            kind=Greater(worth=SHARE),
            unit="fraction",
        ),
        Claim(
            "best-larger-norms",
            "The mean norm of incoming weights grows more in better performing networks.",
            more_of("norm", in_the="best", taken=since_start),
            kind=Greater(worth=NORM),
            unit="norm",
            source="ours",
        ),
        Claim(
            "best-test-better",
            "Networks that train better have a higher test accuracy too.",
            peaks,
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="ours",
        ),
    ),
    cost={"quick": 45, "paper": 450},
    paper_device="one H200",
)
