"""Table 2 and figure 6: equivalently initialised pairs, trained on the same batches."""

from skiplab.studies.yu2019.table_2.study import STUDY

__all__ = ["STUDY"]
