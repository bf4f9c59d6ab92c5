"""Table 4: training loss and weight decay of plain and residual networks before and after training."""

from skiplab.studies.yu2019.table_4.study import STUDY

__all__ = ["STUDY"]
