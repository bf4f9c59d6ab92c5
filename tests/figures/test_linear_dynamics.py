from __future__ import annotations

import numpy as np
import pytest

from skiplab.figures.linear_dynamics import Portrait, Strip, portrait_panel, strips_panel
from skiplab.figures.style import new_figure


def test_strips_with_one_label_share_a_row_and_nan_says_never() -> None:
    _, axes = new_figure()
    ax = axes[0, 0]
    strips = [
        Strip("first", [1.0, 2.0], "red"),
        Strip("first", [3.0], "red", hollow=True),
        Strip("second", [float("nan")], "blue"),
    ]
    strips_panel(ax, strips)
    assert [text.get_text() for text in ax.texts] == ["never", "first", "second"]
    filled, hollow = (line.get_ydata() for line in ax.get_lines())
    assert filled[0] > hollow[0] > -1


def test_exact_zeros_stand_on_the_floor() -> None:
    _, axes = new_figure()
    strips_panel(axes[0, 0], [Strip("zeros", [0.0, 1e-3], "red")], floor=1e-17)
    assert list(axes[0, 0].get_lines()[0].get_xdata()) == [1e-17, 1e-3]
    assert axes[0, 0].get_xlim()[0] == pytest.approx(1e-17)


@pytest.mark.parametrize("printed", [(-1.0, -1.0), (-1.0, -2.0)])
def test_the_printed_saddle_is_ringed_only_if_it_is_elsewhere(printed: tuple[float, float]) -> None:
    _, axes = new_figure()

    def field(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left = 2 - (a + 1) * (b + 1)
        return left * (b + 1), left * (a + 1)

    portrait_panel(axes[0, 0], Portrait("dense", field, (-1.0, -1.0), printed, 2.0, []))
    rings = [line for line in axes[0, 0].get_lines() if line.get_markerfacecolor() == "none"]
    assert len(rings) == (printed != (-1.0, -1.0))
    # Both branches of the solutions satisfy (a + 1)(b + 1) = 2.
    for branch in axes[0, 0].get_lines()[:2]:
        a, b = (np.asarray(data, dtype=float) for data in branch.get_data())
        np.testing.assert_allclose((a + 1) * (b + 1), 2)
