"""Figure S2: the best and the worst of 400 small networks, all of whose eigenvalues are known exactly."""

from skiplab.studies.orhan2018.figure_s2.study import STUDY as STUDY
