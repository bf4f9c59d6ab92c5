"""Figure S6: the main results with two-layer networks."""

from skiplab.studies.orhan2018.figure_s6.study import STUDY as STUDY
