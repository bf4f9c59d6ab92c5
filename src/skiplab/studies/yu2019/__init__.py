"""Yu et al. (2019), Identity Connections in Residual Nets Improve Noise Stability."""

from skiplab.reproduction.study import Paper, Study
from skiplab.studies.yu2019 import table_2, transform

PAPER = Paper(
    id="yu2019",
    title="Identity Connections in Residual Nets Improve Noise Stability",
    authors="Shuzhi Yu, Carlo Tomasi",
    year=2019,
    explains="Identity connections put large entries on the weights' diagonals, so that the same noise changes "
    "outputs less.",
)
STUDIES: tuple[Study, ...] = (transform.STUDY, table_2.STUDY)
