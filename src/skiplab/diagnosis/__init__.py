"""Diagnosis: a user's network seen through the instruments, compared with networks that train well and badly."""
