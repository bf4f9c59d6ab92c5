"""Figure 8: skip matrices with unit eigenvalues and correlated vectors, whose gradients do not vanish."""

from skiplab.studies.orhan2018.figure_8.study import STUDY

__all__ = ["STUDY"]
