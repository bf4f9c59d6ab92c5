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
        "figure-7 residual-best",
        "figure-7 symm-break-beats-plain",
    ),
)
STUDIES = (
    figure_1.STUDY,
    figure_2.STUDY,
    figure_3.STUDY,
    figure_4.STUDY,
    figure_s1.STUDY,
    figure_5.STUDY,
    figure_6.STUDY,
    figure_7.STUDY,
    figure_8.STUDY,
    figure_9.STUDY,
    figure_9_rows.STUDY,
    figure_10.STUDY,
    figure_11.STUDY,
    equation_26.STUDY,
    figure_12.STUDY,
    notes.STUDY,
    note_4.STUDY,
    section_2_5.STUDY,
)
