"""Figure 1: elimination, overlap and linear dependence in one layer, and how skips break each."""

from skiplab.studies.orhan2018.figure_1.study import STUDY

__all__ = ["STUDY"]
