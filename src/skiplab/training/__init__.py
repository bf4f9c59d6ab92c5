"""One training loop for many networks at once; optimisers, schedules, regularisers, callbacks."""

from skiplab.training.loop import History, Plan, train

__all__ = ["History", "Plan", "train"]
