"""Figure 9: training loss of plain and residual networks over the epochs, and the gap between them."""

from skiplab.studies.yu2019.figure_9.study import STUDY

__all__ = ["STUDY"]
