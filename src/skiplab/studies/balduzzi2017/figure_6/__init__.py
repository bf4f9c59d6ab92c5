"""Figure 6: test accuracy against depth, with and without the looks-linear initialisation."""

from skiplab.studies.balduzzi2017.figure_6.study import STUDY

__all__ = ["STUDY"]
