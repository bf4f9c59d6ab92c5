"""Yu & Tomasi (2019), Identity Connections in Residual Nets Improve Noise Stability."""

from skiplab.reproduction.study import Paper
from skiplab.studies.yu2019 import (
    figure_2,
    figure_3,
    figure_9,
    figure_10,
    figure_11,
    figure_12,
    figure_13,
    interlayer_cushion,
    noise,
    table_1,
    table_2,
    table_3,
    table_4,
    table_5,
    transform,
)

PAPER = Paper(
    id="yu2019",
    title="Identity Connections in Residual Nets Improve Noise Stability",
    authors="Shuzhi Yu, Carlo Tomasi",
    year=2019,
    arxiv="1905.10944",
    explains="Identity connections make weights on the diagonal large, so that the same noise changes outputs less.",
    carried_by=(
        "transform same-training-with-decay",
        "table-1 residual-lower-error",
        "figure-2 lower-error-at-equal-risk",
        "figure-3 tenth-layer",
        "noise same-noise",
        "interlayer-cushion residual-larger-cushion",
    ),
)
# fmt: off
_ITEMS = (
    transform, table_1, table_2, table_3, table_4, table_5, figure_2, figure_3, noise, interlayer_cushion,
    figure_9, figure_10, figure_11, figure_12, figure_13,
)
# fmt: on
STUDIES = tuple(item.STUDY for item in _ITEMS)
