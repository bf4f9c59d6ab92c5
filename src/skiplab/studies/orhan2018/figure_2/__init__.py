"""Figure 2: learning near an overlap and near a linear dependence."""

from skiplab.studies.orhan2018.figure_2.study import STUDY

__all__ = ["STUDY"]
