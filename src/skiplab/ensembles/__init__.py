"""Many networks as one computation: stacking, calling, laying out in memory."""

from skiplab.ensembles.ensemble import BACKENDS, Ensemble

__all__ = ["BACKENDS", "Ensemble"]
