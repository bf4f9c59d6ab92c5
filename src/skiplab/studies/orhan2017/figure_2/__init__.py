"""Figure 2: (c) how much of the rescaling symmetry trained plain, residual and hyper-residual networks have."""

from skiplab.studies.orhan2017.figure_2.study import STUDY

__all__ = ["STUDY"]
