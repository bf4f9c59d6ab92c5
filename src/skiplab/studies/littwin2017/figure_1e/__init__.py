"""Figure 1e: the norm of the weights over training, without batch normalisation."""

from skiplab.studies.littwin2017.figure_1e.study import STUDY

__all__ = ["STUDY"]
