"""Table 5: networks with T′, of which only the dominant paths are left."""

from skiplab.studies.yu2019.table_5.study import STUDY

__all__ = ["STUDY"]
