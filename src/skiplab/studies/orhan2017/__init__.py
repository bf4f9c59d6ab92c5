"""Orhan (2017), Skip Connections as Effective Symmetry-Breaking."""

from skiplab.reproduction.study import Paper
from skiplab.studies.orhan2017 import (
    equation_26,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    figure_7_bfloat16,
    figure_8,
    figure_9,
    figure_9_rows,
    figure_10,
    figure_11,
    figure_12,
    figure_s1,
    note_4,
    notes,
    section_2_5,
)

PAPER = Paper(
    id="orhan2017",
    title="Skip Connections as Effective Symmetry-Breaking",
    authors="A. Emin Orhan",
    year=2017,
    arxiv="1701.09175v1",
    explains="Skip connections break the permutation and rescaling symmetries of a network's layers.",
    carried_by=(
        "figure-2 residual-less-than-plain",
        "figure-4 order-of-minima",
        "figure-9 no-help-without-breaking",
        "figure-7 symm-break-beats-plain",
        "figure-11 hyper-better",
    ),
)
# fmt: off
_ITEMS = (
    figure_1, figure_2, figure_3, figure_4, figure_s1, figure_5, figure_6, figure_7, figure_7_bfloat16, figure_8,
    figure_9, figure_9_rows, figure_10, figure_11, equation_26, figure_12, notes, note_4, section_2_5,
)
# fmt: on
STUDIES = tuple(item.STUDY for item in _ITEMS)
