"""Balduzzi et al. (2017), The Shattered Gradients Problem."""

from skiplab.reproduction.study import Paper
from skiplab.studies.balduzzi2017 import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    ll_init,
    proposition_a1,
    theorems,
)

PAPER = Paper(
    id="balduzzi2017",
    title="The Shattered Gradients Problem: If resnets are the answer, then what is the question?",
    authors="David Balduzzi, Marcus Frean, Lennox Leary, JP Lewis, Kurt Wan-Duo Ma, Brian McWilliams",
    year=2017,
    arxiv="1702.08591",
    explains="Skip connections keep gradients at neighbouring inputs alike, which depth otherwise turns into noise.",
    carried_by=(
        "figure-2 deepest-white",
        "figure-2 resnets-whiten-less",
        "theorems theorem-1-nets-bn",
        "figure-6 looks-linear-trains-deeper",
        "figure-6 looks-linear-as-residual",
    ),
)
# fmt: off
_ITEMS = (
    figure_1, figure_2, figure_3, figure_4, figure_5, figure_6, theorems, proposition_a1, ll_init,
)
# fmt: on
STUDIES = tuple(item.STUDY for item in _ITEMS)
