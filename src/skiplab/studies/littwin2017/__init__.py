"""Littwin & Wolf (2017), The Loss Surface of Residual Networks: Ensembles and the Role of Batch Normalization."""

from skiplab.reproduction.study import Paper
from skiplab.studies.littwin2017 import (
    bn_start,
    figure_1abc,
    figure_1d,
    figure_1e,
    figure_1f,
    figure_2,
    figure_3,
    model,
    paths,
    spin_glass,
    theorems,
)

PAPER = Paper(
    id="littwin2017",
    title="The Loss Surface of Residual Networks: Ensembles and the Role of Batch Normalization",
    authors="Etai Littwin, Lior Wolf",
    year=2017,
    arxiv="1611.02525",
    explains="A residual network acts as an ensemble of shallower ones, whose paths grow longer as it trains.",
    carried_by=(
        "figure-1abc theorem-2",
        "paths scale-controls-depth",
        "paths starts-below-half",
        "figure-1d scales-grow",
        "paths deeper-in-training",
        "figure-1f rises-with-beta",
    ),
)
# fmt: off
_ITEMS = (
    model, bn_start, figure_1abc, paths, figure_1d, figure_1e, figure_1f, theorems, figure_2, figure_3,
    spin_glass,
)
# fmt: on
STUDIES = tuple(item.STUDY for item in _ITEMS)
