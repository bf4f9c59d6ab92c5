"""Figure 10: skip matrices with eigenvalues on the unit circle whose vectors are more and more correlated."""

from skiplab.studies.orhan2017.figure_10.study import STUDY

__all__ = ["STUDY"]
