"""Dots side by side: which column a model has, which pairs are joined, what the legend says."""

from __future__ import annotations

import numpy as np

from skiplab.figures.paired_dots import side_by_side
from skiplab.figures.style import new_figure

PAIRS = {"plain": np.array([1.0, 2.0, 3.0]), "residual": np.array([0.5, 1.0, 1.5])}


def test_every_network_is_a_dot_and_pairs_are_joined() -> None:
    _, axes = new_figure()
    side_by_side(axes[0, 0], {"20": PAIRS, "32": PAIRS})
    lines = [line for line in axes[0, 0].get_lines() if len(line.get_xdata()) == 2]
    joined = [tuple(line.get_ydata()) for line in lines if line.get_linewidth() == 0.5]
    assert joined == 2 * [(1.0, 0.5), (2.0, 1.0), (3.0, 1.5)]
    dots = [np.asarray(each.get_offsets()) for each in axes[0, 0].collections if len(each.get_offsets()) > 1]
    assert [each[:, 1].tolist() for each in dots] == 2 * [each.tolist() for each in PAIRS.values()]
    assert [each.get_text() for each in axes[0, 0].get_xticklabels()] == ["20", "32"]


def test_samples_of_unequal_size_are_no_pairs() -> None:
    _, axes = new_figure()
    side_by_side(axes[0, 0], {"20": PAIRS | {"residual": np.array([1.0])}})
    assert not [line for line in axes[0, 0].get_lines() if line.get_linewidth() == 0.5]


def test_the_papers_numbers_are_stars() -> None:
    _, axes = new_figure()
    side_by_side(axes[0, 0], {"20": PAIRS, "32": PAIRS}, {"20": {"plain": 1.9}})
    stars = [line for line in axes[0, 0].get_lines() if line.get_marker() == "*"]
    assert [float(line.get_ydata()[0]) for line in stars] == [1.9]
    assert [each.get_text() for each in axes[0, 0].get_legend().get_texts()] == ["Plain", "Residual", "paper"]


def test_a_single_model_stands_above_its_words() -> None:
    _, axes = new_figure()
    side_by_side(axes[0, 0], {"20": {"plain": PAIRS["plain"]}}, legend=False)
    (dots,) = (
        np.asarray(each.get_offsets()) for each in axes[0, 0].collections if len(each.get_offsets()) == 3
    )
    assert set(dots[:, 0]) == {0.0}
    assert axes[0, 0].get_legend() is None
