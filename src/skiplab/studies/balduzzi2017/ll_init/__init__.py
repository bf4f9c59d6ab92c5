"""Section 5: rectifier networks that look linear when they start."""

from skiplab.studies.balduzzi2017.ll_init.study import STUDY

__all__ = ["STUDY"]
