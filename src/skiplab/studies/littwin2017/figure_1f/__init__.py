"""Figure 1f: the number of critical points of finite index against β; theorem 5."""

from skiplab.studies.littwin2017.figure_1f.study import STUDY

__all__ = ["STUDY"]
