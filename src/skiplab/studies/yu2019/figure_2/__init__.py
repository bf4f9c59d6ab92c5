"""Figure 2 (and 8): training risk and test error over a long training at a constant rate."""

from skiplab.studies.yu2019.figure_2.study import STUDY

__all__ = ["STUDY"]
