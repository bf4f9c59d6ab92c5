"""Figure 1 (and 2a, b): permutation and rescaling of a network's weights, and how skips break both symmetries."""

from skiplab.studies.orhan2017.figure_1.study import STUDY

__all__ = ["STUDY"]
