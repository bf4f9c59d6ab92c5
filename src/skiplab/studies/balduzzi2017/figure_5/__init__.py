"""Figure 5: gradients of convolutional networks on images shatter with depth, those of residual ones less."""

from skiplab.studies.balduzzi2017.figure_5.study import STUDY

__all__ = ["STUDY"]
