"""Figure 3: layer cushions of plain and residual networks."""

from skiplab.studies.yu2019.figure_3.study import STUDY

__all__ = ["STUDY"]
