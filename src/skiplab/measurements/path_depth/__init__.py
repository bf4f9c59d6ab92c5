"""Path lengths in residual networks: how much comes through paths of each length, and the effective depth."""

from skiplab.measurements.path_depth.instrument import path_depth
from skiplab.measurements.path_depth.path_shares import PathDepth

__all__ = ["PathDepth", "path_depth"]
