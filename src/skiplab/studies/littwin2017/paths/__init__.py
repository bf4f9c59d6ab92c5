"""How long the paths are that a residual network's output and gradient come through, as it trains."""

from skiplab.studies.littwin2017.paths.study import STUDY

__all__ = ["STUDY"]
