"""Section 4.1: deviations and path lengths before training, with and without batch normalisation."""

from skiplab.studies.littwin2017.bn_start.study import STUDY

__all__ = ["STUDY"]
