"""Table 1: training loss and test error of plain and residual networks of 20, 32 and 44 layers."""

from skiplab.studies.yu2019.table_1.study import STUDY

__all__ = ["STUDY"]
