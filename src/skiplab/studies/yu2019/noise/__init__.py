"""Noise in the weights of plain and residual networks, and a dose of identity as its control (sections 1 and 5)."""

from skiplab.studies.yu2019.noise.study import STUDY

__all__ = ["STUDY"]
