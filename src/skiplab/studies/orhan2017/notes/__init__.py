"""Notes 1–3: where the Hessian of a network is called singular, and where it is."""

from skiplab.studies.orhan2017.notes.study import STUDY

__all__ = ["STUDY"]
