"""A network under measurement, be it a user's module or an ensemble of ours: the Subject every instrument takes."""

from skiplab.subjects.subject import Subject

__all__ = ["Subject"]
