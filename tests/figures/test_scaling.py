"""Time against size: rounds as dots, the fitted line where it was fitted, and what work alone would take."""

from __future__ import annotations

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.figures.scaling import time_against_size
from skiplab.figures.style import new_figure


def test_lines_and_dots_are_where_the_numbers_are() -> None:
    sizes, work = (1, 2, 4, 8), (10.0, 20.0, 40.0, 80.0)
    seconds = np.array([[2.0, 2.0, 4.0, 8.0], [2.0, 2.0, 4.0, 8.0]]) / 1000
    _, axes = new_figure()
    time_against_size(axes[0, 0], sizes, seconds, slope=1.0, work=work, fitted_from=2)
    expected, fitted, *rounds = axes[0, 0].get_lines()
    np.testing.assert_allclose(expected.get_ydata(), [1, 2, 4, 8])  # ms, through the largest size
    np.testing.assert_allclose(fitted.get_xdata(), [2, 4, 8])
    np.testing.assert_allclose(fitted.get_ydata(), [2, 4, 8])
    assert [list(line.get_ydata()) for line in rounds] == [[2, 2, 4, 8]] * 2
    assert (axes[0, 0].get_xscale(), axes[0, 0].get_yscale()) == ("log", "log")
    assert [text.get_text() for text in axes[0, 0].get_legend().get_texts()] == [
        "as work grows",
        "slope 1.00",
    ]


def test_shapes_that_do_not_fit_are_refused() -> None:
    _, axes = new_figure()
    with pytest.raises(Refused, match=r"seconds have shape \(3,\) for 2 sizes and 2 amounts of work; give"):
        time_against_size(axes[0, 0], (1, 2), np.ones(3), slope=1.0, work=(1.0, 2.0), fitted_from=1)
