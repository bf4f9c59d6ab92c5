"""Figure 3: how often rectifiers are active, and co-active for two inputs, by layer."""

from skiplab.studies.balduzzi2017.figure_3.study import STUDY

__all__ = ["STUDY"]
