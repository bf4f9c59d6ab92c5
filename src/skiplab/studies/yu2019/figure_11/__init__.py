"""Figure 11: how many gradients mostly stem from their own unit of the last layer, in random linear layers."""

from skiplab.studies.yu2019.figure_11.study import STUDY

__all__ = ["STUDY"]
