"""T and T⁻¹: residual networks as plain ones with the same function, gradients and training."""

from skiplab.studies.yu2019.transform.study import STUDY

__all__ = ["STUDY"]
