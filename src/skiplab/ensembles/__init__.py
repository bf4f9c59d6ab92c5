"""Many networks as one computation, and the Subject that every measurement takes."""

from skiplab.ensembles.ensemble import BACKENDS, Ensemble
from skiplab.ensembles.subject import Subject

__all__ = ["BACKENDS", "Ensemble", "Subject"]
