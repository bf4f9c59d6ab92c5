"""Figure 3: the four toy networks, drawn from the architectures themselves."""

from skiplab.studies.orhan2017.figure_3.study import STUDY

__all__ = ["STUDY"]
