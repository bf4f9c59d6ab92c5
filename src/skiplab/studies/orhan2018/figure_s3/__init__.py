"""Figure S3: the paper's estimates of degenerate and negative fractions against exact ones, and ours beside them."""

from skiplab.studies.orhan2018.figure_s3.study import STUDY as STUDY
