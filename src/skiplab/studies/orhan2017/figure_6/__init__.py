"""Figure 6: phase portraits of three-layer modes, and how fast modes of ten layers are learned."""

from skiplab.studies.orhan2017.figure_6.study import STUDY

__all__ = ["STUDY"]
