"""Residual networks as ensembles of paths: how much each path length counts, and what moves it (littwin2017)."""
