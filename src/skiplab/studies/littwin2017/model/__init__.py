"""Eqs 9–15 and lemmas 1, 2: the output of a residual network as a sum over paths, on constructed networks."""

from skiplab.studies.littwin2017.model.study import STUDY

__all__ = ["STUDY"]
