"""Yu et al. (2019), Identity Connections in Residual Nets Improve Noise Stability."""

from skiplab.reproduction.study import Paper
from skiplab.studies.yu2019 import figure_11, figure_13

PAPER = Paper(
    id="yu2019",
    title="Identity Connections in Residual Nets Improve Noise Stability",
    authors="Shuzhi Yu, Carlo Tomasi",
    year=2019,
    explains=(
        "Identity connections put large entries on the weights' diagonals, so that the same noise "
        "changes outputs less."
    ),
)
STUDIES = (figure_11.STUDY, figure_13.STUDY)
