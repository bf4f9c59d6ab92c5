"""Littwin & Wolf (2017), The Loss Surface of Residual Networks: Ensembles and the Role of Batch Normalization."""

from skiplab.reproduction.study import Alias, Paper, Study
from skiplab.studies.littwin2017 import bn_start, figure_1d, figure_1e, figure_2, figure_3, paths

PAPER = Paper(
    id="littwin2017",
    title="The Loss Surface of Residual Networks: Ensembles and the Role of Batch Normalization",
    authors="Etai Littwin, Lior Wolf",
    year=2017,
    explains="A residual network acts as an ensemble of shallower ones, whose paths grow longer as it trains.",
)
STUDIES: tuple[Study | Alias, ...] = (
    bn_start.STUDY,
    paths.STUDY,
    figure_1d.STUDY,
    figure_1e.STUDY,
    figure_2.STUDY,
    figure_3.STUDY,
)
