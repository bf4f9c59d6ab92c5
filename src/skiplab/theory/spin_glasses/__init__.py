"""Spherical spin glasses with several interactions, and how many critical points they have (littwin2017)."""
