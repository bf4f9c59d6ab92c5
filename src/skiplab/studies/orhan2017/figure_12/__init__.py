"""Figure 12: constant biases a·l + b, which break the rescaling symmetry of plain networks."""

from skiplab.studies.orhan2017.figure_12.study import STUDY

__all__ = ["STUDY"]
