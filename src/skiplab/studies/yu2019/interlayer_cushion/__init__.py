"""Interlayer cushions of the blocks of fully fledged networks (section 5)."""

from skiplab.studies.yu2019.interlayer_cushion.study import STUDY

__all__ = ["STUDY"]
