"""Theorems 3 and 4, eq 21: which way a step of gradient descent pushes scales that stand still."""

from skiplab.studies.littwin2017.theorems.study import STUDY

__all__ = ["STUDY"]
