"""Eq 33 against the mean number of minima that Kac and Rice's formula gives with sampled random matrices."""

from skiplab.studies.littwin2017.spin_glass.study import STUDY

__all__ = ["STUDY"]
