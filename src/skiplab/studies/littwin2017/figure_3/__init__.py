"""Figure 3: batch normalisation's coefficients over training."""

from skiplab.studies.littwin2017.figure_3.study import STUDY

__all__ = ["STUDY"]
