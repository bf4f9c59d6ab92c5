"""Table 3 and figure 7: weights of plain and residual networks of 32 layers before and after training."""

from skiplab.studies.yu2019.table_3.study import STUDY

__all__ = ["STUDY"]
