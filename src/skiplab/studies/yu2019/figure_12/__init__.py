"""Figure 12: the share of dominant gradient flows by layer, at the start and the end of training."""

from skiplab.studies.yu2019.figure_12.study import STUDY

__all__ = ["STUDY"]
