from __future__ import annotations

import pytest

from skiplab.figures.strips import Strip, strips_panel
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
