"""Figure 5: how a¹ and a² evolve in three-layer linear networks, plain and residual."""

from skiplab.studies.orhan2017.figure_5.study import STUDY

__all__ = ["STUDY"]
