"""Proposition A1: the gradient of a one-layer net is a random walk that tends to Brownian motion."""

from skiplab.studies.balduzzi2017.proposition_a1.study import STUDY

__all__ = ["STUDY"]
