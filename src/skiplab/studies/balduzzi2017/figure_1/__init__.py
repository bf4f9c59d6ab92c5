"""Figure 1: gradients of rectifier networks on a line, beside brown and white noise."""

from skiplab.studies.balduzzi2017.figure_1.study import STUDY

__all__ = ["STUDY"]
