"""Figure 1a–c: how much paths of each length weigh; theorems 1 and 2, lemma 4."""

from skiplab.studies.littwin2017.figure_1abc.study import STUDY

__all__ = ["STUDY"]
