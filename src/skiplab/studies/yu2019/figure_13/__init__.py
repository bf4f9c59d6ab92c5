"""Figure 13: the probability that one Gaussian variable exceeds another in size, and its approximation."""

from skiplab.studies.yu2019.figure_13.study import STUDY

__all__ = ["STUDY"]
