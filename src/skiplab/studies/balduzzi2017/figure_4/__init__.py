"""Figure 4: which rectifiers are active for which inputs, and for how many inputs in a row."""

from skiplab.studies.balduzzi2017.figure_4.study import STUDY

__all__ = ["STUDY"]
