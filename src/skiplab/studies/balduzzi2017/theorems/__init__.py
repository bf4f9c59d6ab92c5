"""Theorems 1–3 and corollary 1: how gradients at two inputs vary together, in theory, under coins, and in nets."""

from skiplab.studies.balduzzi2017.theorems.study import STUDY

__all__ = ["STUDY"]
