"""Orhan & Pitkow (2018), Skip Connections Eliminate Singularities."""

from skiplab.reproduction.study import Paper
from skiplab.studies.orhan2018 import figure_1, figure_2

PAPER = Paper(
    id="orhan2018",
    title="Skip Connections Eliminate Singularities",
    authors="A. Emin Orhan and Xaq Pitkow",
    year=2018,
    explains="Skip connections remove the singularities at which a network's loss becomes degenerate.",
)
STUDIES = (figure_1.STUDY, figure_2.STUDY)
