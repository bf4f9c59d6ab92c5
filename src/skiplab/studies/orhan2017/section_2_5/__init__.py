"""Section 2.5: the symmetries of recurrent networks; and how many permutations classes of neurons leave."""

from skiplab.studies.orhan2017.section_2_5.study import STUDY

__all__ = ["STUDY"]
