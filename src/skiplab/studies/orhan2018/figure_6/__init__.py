"""Figure 6: gradient norms by layer early in training, and BiasReg with one batch normalisation."""

from skiplab.studies.orhan2018.figure_6.study import STUDY as STUDY
