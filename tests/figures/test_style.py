"""The house style: same bytes each time, no global state touched, one look for all panels."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pytest

from skiplab.checks import Refused
from skiplab.figures import style


def _draw(folder: Path) -> None:
    figure, axes = style.new_figure(2, 2)
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        ax.plot([0, 1, 2], [0, 1, 4], label="line")
        ax.legend()
        ax.set_title("A title")
        style.panel_letter(ax, letter)
    style.save(figure, folder)


def test_the_same_figure_has_the_same_bytes(tmp_path: Path) -> None:
    _draw(tmp_path / "a")
    _draw(tmp_path / "b")
    for name in ("figure.png", "figure.svg"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_saving_one_figure_twice_moves_nothing(tmp_path: Path) -> None:
    figure, axes = style.new_figure()
    axes[0, 0].plot([0, 1], [0, 1])
    style.save(figure, tmp_path / "a")
    style.save(figure, tmp_path / "b")
    assert (tmp_path / "a" / "figure.svg").read_bytes() == (tmp_path / "b" / "figure.svg").read_bytes()


def test_neither_file_carries_a_date_or_a_version(tmp_path: Path) -> None:
    _draw(tmp_path)
    svg = (tmp_path / "figure.svg").read_text()
    assert "dc:date" not in svg
    assert mpl.__version__ not in svg
    assert mpl.__version__.encode() not in (tmp_path / "figure.png").read_bytes()


def test_global_settings_are_left_alone(tmp_path: Path) -> None:
    before = dict(mpl.rcParams)
    _draw(tmp_path)
    assert dict(mpl.rcParams) == before


def test_things_added_later_follow_the_style() -> None:
    _, axes = style.new_figure()
    ax = axes[0, 0]
    (line,) = ax.plot([0, 1], [0, 1], label="x")
    assert line.get_linewidth() == style.STYLE["lines.linewidth"]
    assert ax.set_title("t").get_fontsize() == style.STYLE["axes.titlesize"]
    assert not ax.legend().get_frame_on()
    assert not ax.spines["top"].get_visible()


def test_the_ground_is_white_and_the_size_follows_the_panels() -> None:
    figure, axes = style.new_figure(columns=3, rows=2)
    assert axes.shape == (2, 3)
    assert figure.get_facecolor() == (1, 1, 1, 1)
    assert tuple(figure.get_size_inches()) == (style.PAGE_WIDTH, 2 * style.PANEL_HEIGHT)
    figure, _ = style.new_figure(width=5, height=1.5)
    assert tuple(figure.get_size_inches()) == (5, 1.5)


def test_zero_columns_are_refused() -> None:
    with pytest.raises(Refused, match="columns is 0, but must be at least 1"):
        style.new_figure(columns=0)


def test_a_figure_as_svg_has_the_same_bytes_each_time() -> None:
    def drawn() -> bytes:
        figure, axes = style.new_figure()
        axes[0, 0].plot([1, 2], [3, 4])
        return style.svg(figure)

    assert drawn() == drawn()
    assert drawn().rstrip().endswith(b"</svg>")
