"""Figure 1d: batch normalisation's scales over training."""

from skiplab.studies.littwin2017.figure_1d.study import STUDY

__all__ = ["STUDY"]
