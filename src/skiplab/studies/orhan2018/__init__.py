"""Orhan & Pitkow (2018), Skip Connections Eliminate Singularities."""

from skiplab.reproduction.study import Paper
from skiplab.studies.orhan2018 import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    figure_8,
    figure_s1,
    figure_s2,
    figure_s3,
    figure_s4,
    figure_s5,
    figure_s6,
    figure_s7,
)

PAPER = Paper(
    id="orhan2018",
    title="Skip Connections Eliminate Singularities",
    authors="A. Emin Orhan and Xaq Pitkow",
    year=2018,
    arxiv="1701.09175v8",
    explains="Skip connections remove the singularities at which a network's loss becomes degenerate.",
    carried_by=(
        "figure-1 skip-not-flat",
        "figure-3 plain-more-degenerate-than-residual",
        "figure-3 residual-beats-plain",
        "figure-4 worst-more-degenerate",
        "figure-5 bias-reg-beats-plain",
    ),
)
# fmt: off
_ITEMS = (
    figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, figure_7, figure_8, figure_s1, figure_s2,
    figure_s3, figure_s4, figure_s5, figure_s6, figure_s7,
)
# fmt: on
STUDIES = tuple(item.STUDY for item in _ITEMS)
