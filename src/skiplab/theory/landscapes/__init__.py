"""Whole loss landscapes of networks small enough to list (orhan2017, section 2.2)."""
