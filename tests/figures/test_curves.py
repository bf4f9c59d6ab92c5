"""General plots: what is drawn equals closed forms, and wrong shapes are refused."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PathCollection

from skiplab.checks import Refused
from skiplab.figures import curves, style
from skiplab.figures.colours import colour_of
from skiplab.randomness import numpy_generator


def test_students_interval_of_two_runs_is_the_cauchy_quantile() -> None:
    # With one degree of freedom t is Cauchy: the .975 quantile is tan(.475 π); sem = |a − b| / 2.
    mean, low, high = curves.mean_interval(np.array([[1.0], [3.0]]))
    half = np.tan(0.475 * np.pi)
    np.testing.assert_allclose([mean[0], low[0], high[0]], [2, 2 - half, 2 + half], rtol=1e-10)


def test_one_run_has_no_width() -> None:
    mean, low, high = curves.mean_interval(np.array([[4.0, 5.0]]))
    np.testing.assert_array_equal([mean, low, high], [[4, 5]] * 3)


@pytest.mark.parametrize(("runs", "skipped"), [(5, 0), (6, 0), (9, 1), (20, 5)])
def test_medians_interval_is_the_binomial_one(runs: int, skipped: int) -> None:
    middle, low, high = curves.median_interval(np.arange(runs)[:, None])
    assert (middle[0], low[0], high[0]) == ((runs - 1) / 2, skipped, runs - 1 - skipped)


def test_the_medians_interval_covers_it_in_95_of_100_cases() -> None:
    draws = numpy_generator(0, "coverage").lognormal(size=(20, 4000))
    _, low, high = curves.median_interval(draws)
    covered = np.mean((low <= 1) & (high >= 1))
    assert 0.945 < covered < 0.975  # exactly .9586 for 20 runs


def test_learning_curves_draw_the_mean_and_the_given_interval() -> None:
    _, axes = style.new_figure()
    ax = axes[0, 0]
    runs = {"plain": np.array([[1.0, 2.0], [3.0, 6.0]]), "residual": np.array([[5.0, 6.0], [7.0, 8.0]])}
    curves.learning_curves(ax, [1, 2], runs, intervals={"plain": (np.array([0, 1]), np.array([9, 8]))})
    plain, residual = ax.get_lines()
    np.testing.assert_array_equal(plain.get_ydata(), [2, 4])
    assert plain.get_color() == colour_of("plain")
    np.testing.assert_array_equal(residual.get_ydata(), [6, 7])
    corners = ax.collections[0].get_paths()[0].vertices
    assert {(1, 0), (2, 1), (1, 9), (2, 8)} <= {tuple(corner) for corner in corners}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["Plain", "Residual"]


def test_a_diverged_run_leaves_a_gap() -> None:
    _, axes = style.new_figure()
    curves.learning_curves(axes[0, 0], [1, 2], {"plain": np.array([[1.0, np.nan], [3.0, 4.0]])})
    assert np.isnan(axes[0, 0].get_lines()[0].get_ydata()[1])


def test_direct_labels_do_not_touch(tmp_path: Path) -> None:
    figure, axes = style.new_figure()
    ax = axes[0, 0]
    runs = {name: np.full((2, 3), 50 + 0.1 * i) for i, name in enumerate(["plain", "residual", "bias-init"])}
    runs["hyper-residual"] = np.full((2, 3), 90.0)
    curves.learning_curves(ax, [1, 2, 3], runs, labels="direct")
    style.save(figure, tmp_path)
    boxes = sorted((text.get_window_extent().bounds for text in ax.texts), key=lambda box: box[1])
    assert [text.get_text() for text in ax.texts] == ["Plain", "Residual", "BiasInit", "Hyper-residual"]
    assert all(lower[1] + lower[3] <= upper[1] + 1 for lower, upper in itertools.pairwise(boxes))


def test_by_layer_survives_dead_networks_on_its_logarithmic_axis(tmp_path: Path) -> None:
    figure, axes = style.new_figure()
    ax = axes[0, 0]
    norms = np.geomspace(1, 1e-4, 5) * np.ones((7, 1))
    norms[:2, 3] = 0.0
    norms[:, 4] = 0.0
    curves.by_layer(ax, range(5), {"plain": norms})
    style.save(figure, tmp_path)
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[0] > 1e-5
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata()[:4], np.geomspace(1, 1e-4, 5)[:4])


def test_final_dots_show_every_run() -> None:
    _, axes = style.new_figure()
    ax = axes[0, 0]
    samples = [[1.0, 2.0, 3.0], [4.0, 4.0, 5.0, 6.0]]
    curves.final_dots(ax, ["plain", "residual"], samples)
    clouds = [each for each in ax.collections if isinstance(each, PathCollection)]
    for drawn, sample in zip(clouds, samples, strict=True):
        np.testing.assert_array_equal(drawn.get_offsets()[:, 1], sample)
        assert len(np.unique(drawn.get_offsets()[:, 0])) == len(sample)
    assert [text.get_text() for text in ax.get_xticklabels()] == ["Plain", "Residual"]


def test_heatmap_frames_the_best_cell_and_marks_what_was_not_run(tmp_path: Path) -> None:
    figure, axes = style.new_figure()
    ax = axes[0, 0]
    values = np.array([[1.0, 5.0, 2.0], [np.nan, 3.0, 4.0]])
    curves.heatmap(ax, values, [0.1, 1], [0, 1e-4, 1e-3], row_label="σ", column_label="λ")
    style.save(figure, tmp_path)
    assert [text.get_text() for text in ax.texts] == ["1.0", "5.0", "2.0", "–", "3.0", "4.0"]
    np.testing.assert_allclose(ax.patches[0].get_xy(), (0.54, -0.46))
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "0.0001", "0.001"]
    curves.heatmap(style.new_figure()[1][0, 0], np.full((1, 1), np.nan), ["a"], ["b"], best="min")


def test_wrong_shapes_are_refused() -> None:
    ax = style.new_figure()[1][0, 0]
    with pytest.raises(Refused, match=r"plain has runs of shape \(2, 3\) for 4 points"):
        curves.learning_curves(ax, range(4), {"plain": np.ones((2, 3))})
    with pytest.raises(Refused, match="got 1 names for 2 samples"):
        curves.final_dots(ax, ["plain"], [[1.0], [2.0]])
    with pytest.raises(Refused, match="give each cell one value"):
        curves.heatmap(ax, np.ones((2, 2)), ["a"], ["b"])
    with pytest.raises(Refused, match=r"labels 'legends' is unknown; .*Did you mean legend"):
        curves.learning_curves(ax, [1], {"plain": np.ones((2, 1))}, labels="legends")
