"""Figure 2: norms of convolutions with batch normalisation absorbed, over training."""

from skiplab.studies.littwin2017.figure_2.study import STUDY

__all__ = ["STUDY"]
