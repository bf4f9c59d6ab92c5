"""Figure 2: the autocorrelation of gradients by depth, for feedforward networks, resnets and noise."""

from skiplab.studies.balduzzi2017.figure_2.study import STUDY

__all__ = ["STUDY"]
