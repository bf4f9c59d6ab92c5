"""The one shape of results: intervals that hold what they should, tables, text and figures that follow from them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from skiplab.measurements.estimate import Estimate, joined, over_networks
from skiplab.measurements.result import Result, number_of
from skiplab.randomness import torch_generator


def normal(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch_generator("result"), dtype=torch.float64)


def test_the_mean_has_students_interval() -> None:
    samples = normal(3, 12)
    found = Estimate.mean(samples)
    for row, low, high in zip(samples.numpy(), found.low, found.high, strict=True):
        expected = stats.t.interval(0.95, 11, row.mean(), stats.sem(row))
        assert (low.item(), high.item()) == pytest.approx(expected)
    assert bool(found.settled.all())


@pytest.mark.parametrize("count", [6, 15, 40])
def test_the_medians_interval_holds_it_in_at_least_95_percent(count: int) -> None:
    found = Estimate.median(normal(4_000, count))
    held = ((found.low <= 0) & (found.high >= 0)).double().mean().item()
    assert 0.945 < held < 0.99
    np.testing.assert_allclose(found.value, np.median(normal(4_000, count), 1))


def test_samples_without_a_value_are_left_out_of_the_median() -> None:
    samples = normal(3, 20)
    holes = samples.clone()
    holes[0, ::2] = torch.nan
    holes[1] = torch.nan
    found, whole = Estimate.median(holes), Estimate.median(samples)
    expected = Estimate.median(samples[:1, 1::2])
    for end in ("value", "low", "high"):
        assert getattr(found, end)[0] == getattr(expected, end)[0]
        assert getattr(found, end)[2] == getattr(whole, end)[2]
    assert str(found[1]) == "unknown"


@pytest.mark.parametrize("estimate", [Estimate.mean(normal(2, 1)), Estimate.median(normal(2, 5))])
def test_too_few_samples_leave_the_question_open(estimate: Estimate) -> None:
    assert not estimate.settled.any()
    assert str(estimate[0]) == "unknown"


def test_a_mean_of_parts_has_the_error_within_them() -> None:
    shifts = torch.tensor([0.0, 10.0, -5.0, 100.0], dtype=torch.float64).repeat_interleave(5)
    samples = normal(4_000, 20) + shifts
    found = Estimate.mean(samples, parts=4)
    held = ((found.low <= shifts.mean()) & (shifts.mean() <= found.high)).double().mean().item()
    assert 0.94 < held < 0.97
    assert float((found.high - found.low).mean()) < 1.2  # of all together it would be 42
    exact = Estimate.mean(torch.ones(2, 6), parts=3)
    assert exact.low.tolist() == exact.high.tolist() == [1, 1]


def test_words_of_an_estimate() -> None:
    one, two, hole = (torch.tensor(value) for value in (0.25, 0.5, torch.nan))
    assert str(Estimate.exact(one)) == "0.25"
    assert str(Estimate(one, one / 2, two)) == "0.25 (0.125 to 0.5)"
    assert str(Estimate(hole, one, two)) == "0.25 to 0.5, unresolved"
    assert str(Estimate.between(one, two)) == "0.25 to 0.5, unresolved"
    assert str(Estimate.exact(one[None])) == "0.25"  # of one network
    assert str(Estimate.exact(hole)) == "unknown"
    assert repr(Estimate.exact(normal(2, 3))) == "(2, 3) estimates"


def test_an_interval_is_told_with_the_digits_that_its_ends_need() -> None:
    value, low, high = (torch.tensor(each, dtype=torch.float64) for each in (128.2138, 128.2131, 128.2149))
    assert str(Estimate(value, low, high)) == "128.214 (128.213 to 128.215)"
    assert str(Estimate.between(low, high)) == "128.213 to 128.215, unresolved"
    assert str(Estimate(value, value - 1e-12, value + 1e-12)) == "128.2138"


@dataclass(frozen=True, repr=False)
class Lengths(Result):
    """An instrument's result with one exact quantity and one of which little is known."""

    title = "Length"
    reference = "nobody (2026)"

    layers: tuple[str, ...]
    lengths: Tensor

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """The lengths, and the same without a value."""
        hole = torch.full_like(self.lengths, torch.nan)
        return {"exact": Estimate.exact(self.lengths), "open": Estimate(hole, self.lengths, self.lengths + 1)}

    @property
    def based_on(self) -> str:
        """Words."""
        return "7 samples"


def test_limits_are_no_point_and_the_standard_error_includes_them() -> None:
    low, high = torch.tensor([0.0, 0.2]), torch.tensor([0.4, 0.2])
    found = Estimate.between(low, high, level=0.99)
    assert found.value.tolist() == pytest.approx([0.2, 0.2])
    assert not found.settled.any()
    assert found.stderr.tolist() == pytest.approx([0.2 / stats.norm.ppf(0.995), 0.0])
    samples = normal(4, 400)
    mean = Estimate.mean(samples)
    np.testing.assert_allclose(
        mean.stderr, stats.sem(samples, axis=1), rtol=5e-3
    )  # Student's t is near normal


def test_estimates_join_along_a_new_axis_and_stay_open() -> None:
    exact, limits = Estimate.exact(torch.ones(2)), Estimate.between(torch.zeros(2), torch.ones(2))
    both = joined([exact, limits], 1)
    assert both.value.tolist() == [[1.0, 0.5]] * 2
    assert both.settled.tolist() == [[True, False]] * 2


def test_the_table_has_one_row_per_network_and_layer() -> None:
    lengths = normal(2, 3)
    frame = Lengths(("a", "b", "c"), lengths).frame()
    assert list(frame.columns) == ["network", "layer", "exact", "open", "open, low", "open, high"]
    assert len(frame) == 2 * 3
    row = frame[(frame["network"] == 1) & (frame["layer"] == "c")]
    assert np.isnan(row["open"].item())
    assert row["open, low"].item() == row["exact"].item() == lengths[1, 2].item()


def test_the_table_of_one_network_does_not_count_it() -> None:
    frame = Lengths(("a", "b", "c"), normal(1, 3)).frame()
    assert frame["layer"].tolist() == ["a", "b", "c"]
    assert "network" not in frame


def test_the_text_is_short_and_shows_no_open_question_as_a_point() -> None:
    lines = repr(Lengths(("a", "b"), torch.tensor([[0.5, 2.0]]))).splitlines()
    assert lines == [
        "Length of 2 layers, 7 samples",
        "  exact: 0.5 in a … 2 in b",
        "  open: 0.5 to 1.5, unresolved in a … 2 to 3, unresolved in b",
        "  nobody (2026)",
    ]
    assert "3 networks, 2 layers" in repr(Lengths(("a", "b"), normal(3, 2)))
    assert "unknown" in repr(Lengths(("a",), torch.full((1, 1), torch.nan)))
    partly = repr(Lengths(("a", "b", "c"), torch.tensor([[0.5, torch.nan, 2.0]])))
    assert "exact: 0.5 in a … 2 in c; 1 unknown" in partly


def test_the_text_tells_a_layers_number_from_its_value_and_says_where_all_are_alike() -> None:
    assert "exact: 0.5 at layer 0 … 2 at layer 2\n" in repr(Lengths(("0", "2"), torch.tensor([[0.5, 2.0]])))
    zeros = torch.zeros(1, 3)
    assert "exact: 0 in all 3 layers\n" in repr(Lengths(("0", "2", "4"), zeros))
    assert "exact: 0 in both layers\n" in repr(Lengths(("0", "2"), zeros[:, :2]))
    zeros[0, 1] = torch.nan
    assert "exact: 0 in 2 layers; 1 unknown\n" in repr(Lengths(("0", "2", "4"), zeros))


def test_the_text_says_why_there_is_no_interval() -> None:
    class Median(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """A median of too few samples."""
            return {"median": Estimate.median(self.lengths[..., None].expand(-1, -1, 4))}

    few = repr(Median(("a", "b"), normal(1, 2))).splitlines()[1]
    assert few == "  median: unknown, too few samples or draws for an interval"


def test_the_ends_are_ordered_by_what_is_shown() -> None:
    class Skewed(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """The wider interval lies lower, its value higher."""
            low, high = self.lengths - torch.tensor([[0.5, 0.1]]), self.lengths + 0.1
            return {"length": Estimate(self.lengths, low, high)}

    lines = repr(Skewed(("a", "b"), torch.tensor([[0.96, 0.9]]))).splitlines()
    assert lines[1] == "  length: 0.9 (0.8 to 1) in b … 0.96 (0.46 to 1.06) in a"


def test_of_equal_values_both_ends_of_the_intervals_are_shown() -> None:
    class Equal(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """Intervals that differ, of values that do not, and limits around one middle."""
            half = torch.tensor([[0.2, 0.1, 0.4]])
            middle = torch.full((1, 3), 0.5)
            return {
                "length": Estimate(self.lengths, self.lengths, self.lengths + half),
                "limits": Estimate.between(middle - half, middle + half),
            }

    lines = repr(Equal(("a", "b", "c"), torch.zeros(1, 3))).splitlines()
    assert lines[1] == "  length: 0 (0 to 0.1) in b … 0 (0 to 0.4) in c"
    assert lines[2] == "  limits: 0.4 to 0.6, unresolved in b … 0.1 to 0.9, unresolved in c"


def test_what_has_limits_is_unresolved_and_not_unknown() -> None:
    class Partly(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """The first is settled, of the last nothing is known, those between have limits."""
            low, high = (
                torch.tensor([[1.0, 0.25, 0.5, torch.nan]]),
                torch.tensor([[3.0, 0.75, 2.0, torch.nan]]),
            )
            return {
                "share": Estimate(
                    (low + high) / 2, low, high, unresolved=torch.tensor([[False, *[True] * 3]])
                )
            }

    line = repr(Partly(("a", "b", "c", "d"), torch.zeros(1, 4))).splitlines()[1]
    assert line == "  share: 2 (1 to 3) in a; 2 unresolved (0.25 to 2); 1 unknown"


@pytest.mark.parametrize("networks", [2, 20])
def test_the_mean_over_networks_is_open_where_that_of_one_is(networks: int) -> None:
    lows = normal(networks, 3).abs()
    marks = torch.zeros(networks, 3, dtype=torch.bool)
    marks[:, 1] = True  # open in all, in one, and in none
    marks[0, 2] = True
    highs = torch.where(marks, lows + 1, lows)
    found = over_networks(Estimate((lows + highs) / 2, lows, highs, unresolved=marks))
    assert found.settled.tolist() == [True, False, False]
    assert found.unresolved.tolist() == [False, True, True]
    assert found.value[0].item() == pytest.approx(lows[:, 0].mean().item())
    assert bool((found.low <= lows.mean(0)).all())
    assert bool((found.high >= highs.mean(0)).all())
    assert bool((found.low >= lows.amin(0))[1:].all() & (found.high <= highs.amax(0))[1:].all())
    one = over_networks(Estimate.between(lows[:1], highs[:1] + 1))
    assert (one.low.tolist(), one.high.tolist()) == (lows[0].tolist(), (highs[0] + 1).tolist())


def test_a_notebook_shows_the_text_and_the_first_rows() -> None:
    html = Lengths(("a<b", "c"), normal(30, 2))._repr_html_()
    assert "a&lt;b" in html
    assert "40 further rows in .frame()" in html
    assert html.count("<tr") == 1 + 20


def test_a_notebooks_table_shows_no_open_question_as_a_number() -> None:
    class Open(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """Limits of the first layer, and the value of the second."""
            marks = torch.tensor([[True, False]])
            return {"open": Estimate(self.lengths, self.lengths - 1, self.lengths + 1, unresolved=marks)}

    html = Open(("a", "b"), torch.tensor([[0.4321, 2.5]]))._repr_html_()
    assert "<td>unresolved</td>" in html
    assert "<td>2.5</td>" in html
    assert "0.4321" not in html
    assert "resolved</th>" not in html
    assert "<td></td>" in Open(("a", "b"), torch.tensor([[0.5, torch.nan]]))._repr_html_()


def test_a_figure_marks_no_open_question_with_a_point() -> None:
    class Open(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """Limits only."""
            return {"open": Estimate.between(self.lengths, self.lengths + 1)}

    axes = Open(("a", "b"), normal(1, 2)).plot().axes[0]
    assert np.isnan(axes.lines[0].get_ydata()).all()
    assert len(axes.collections) == 2  # the band and the intervals


@pytest.mark.parametrize(("networks", "lines"), [(2, 2), (20, 1)])
def test_the_figure_draws_networks_or_the_mean_of_many(networks: int, lines: int) -> None:
    figure = Lengths(("a", "b", "c"), normal(networks, 3)).plot()
    assert figure.get_suptitle() == "Length"
    first, last = figure.axes
    assert len(first.lines) == lines
    assert [text.get_text() for text in last.get_xticklabels()] == ["a", "b", "c"]
    key = first.get_legend()
    names = [text.get_text() for text in key.get_texts()] if key else []
    assert names == [f"network {number}" for number in range(networks) if lines > 1]


@pytest.mark.parametrize("count", [5, 12, 13, 36, 37, 92, 400])
@pytest.mark.parametrize("name", ["{}", "layer{}", "encoder.layers.{}.self_attention.in_proj_weight"])
def test_names_of_layers_stand_apart_however_many_there_are(count: int, name: str) -> None:
    names = tuple(name.format(number) for number in range(count))
    figure = Lengths(names, normal(1, count)).plot()
    figure.draw_without_rendering()
    axes = figure.axes[-1]
    labels = [label for label in axes.get_xticklabels() if label.get_text()]
    assert len(labels) >= min(count, 18)
    boxes = [label.get_window_extent() for label in labels]
    if labels[0].get_rotation() in (0, 90):
        gaps = [right.x0 - left.x1 for left, right in itertools.pairwise(boxes)]
    else:  # slanted: lines of text are as far apart as their ends
        across = math.sin(math.radians(labels[0].get_rotation()))
        size = labels[0].get_fontsize() * figure.dpi / 72
        gaps = [(right.x1 - left.x1) * across - size for left, right in itertools.pairwise(boxes)]
    assert min(gaps) > 0
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(box.y0 >= figure.bbox.y0 for box in boxes)
    assert axes.get_window_extent().height > 0.6 * figure.dpi  # inches: names leave room for the curve


class Several(Lengths):
    """Three quantities: one has limits only, of one nothing is known."""

    on_axes: ClassVar[Mapping[str, str]] = {"share": "share of units"}
    marks = (("share", 0.5, "half"), ("limits", [0.1, 0.2, 0.3], "random weights"))

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Exact, open and unknown."""
        return {
            "share": Estimate.exact(self.lengths),
            "limits": Estimate.between(self.lengths, self.lengths + 1),
            "nothing": Estimate.exact(self.lengths * torch.nan),
        }


@pytest.mark.parametrize("networks", [1, 3])
def test_every_quantity_of_which_something_is_known_has_a_panel(networks: int) -> None:
    figure = Several(("a", "b", "c"), normal(networks, 3)).plot()
    assert figure.get_suptitle() == "Length"
    panels = [panel for panel in figure.axes if panel.get_visible()]
    assert [panel.get_title("left") for panel in panels] == ["share of units", "limits"]
    named = ["".join(text.get_text() for text in panel.get_xticklabels()) for panel in panels]
    assert named == ["", "abc"]
    assert [panel.get_xlabel() for panel in panels] == ["", "layer"]
    assert panels[0].get_xlim() == panels[1].get_xlim()
    keys = [[text.get_text() for text in panel.get_legend().get_texts()] for panel in panels]
    several = [f"network {number}" for number in range(networks) if networks > 1]
    assert keys == [[*several, "half"], ["random weights"]]
    dashed = [line for line in panels[1].get_lines() if line.get_label() == "random weights"]
    assert dashed[0].get_ydata().tolist() == [0.1, 0.2, 0.3]
    figure.draw_without_rendering()


def test_many_quantities_of_few_layers_stand_in_two_columns() -> None:
    class Five(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """Five quantities."""
            return {f"quantity {number}": Estimate.exact(self.lengths) for number in range(5)}

    few, many = Five(("a", "b"), normal(1, 2)).plot(), Five(tuple("abcdefghijklm"), normal(1, 13)).plot()
    assert [panel.get_visible() for panel in few.axes] == [True] * 5 + [False]
    named = [bool([text for text in panel.get_xticklabels() if text.get_text()]) for panel in few.axes[:5]]
    assert named == [False, False, False, True, True]  # the lowest of each column
    assert len(many.axes) == 5


def test_an_interval_that_reaches_down_to_0_does_not_flatten_a_logarithmic_axis() -> None:
    class Decades(Lengths):
        by_decades = True

        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """Values that span decades, the interval of one of which holds 0."""
            return {"size": Estimate(self.lengths, self.lengths - 0.2, self.lengths + 0.2).within(0)}

    panel = Decades(("a", "b", "c"), torch.tensor([[0.1, 1.0, 9.0]])).plot().axes[0]
    assert panel.get_yscale() == "log"
    assert panel.get_ylim()[0] == pytest.approx(0.01)


def test_what_spans_decades_is_drawn_so_unless_it_is_not_positive() -> None:
    class Decades(Lengths):
        by_decades = True

    sizes = torch.tensor([[0.2, 1.0, 3.0], [0.4, 2.0, 9.0]])
    assert Decades(("a", "b", "c"), sizes).plot().axes[0].get_yscale() == "log"
    assert Decades(("a", "b", "c"), 1 + sizes).plot().axes[0].get_yscale() == "linear"  # less than a decade
    unknown = sizes * torch.nan
    Decades(("a", "b", "c"), unknown).plot().draw_without_rendering()  # nothing to take logarithms of
    assert Decades(("a", "b", "c"), sizes * torch.tensor([1, 0, 1])).plot().axes[0].get_yscale() == "linear"
    assert Lengths(("a", "b", "c"), sizes).plot().axes[0].get_yscale() == "linear"


def test_a_figure_leaves_out_quantities_of_which_nothing_is_known() -> None:
    class Median(Lengths):
        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """A median of too few samples, and a mean."""
            few = Estimate.median(self.lengths[..., None].expand(-1, -1, 4))
            return {"median": few, "mean": Estimate.exact(self.lengths)}

    axes = Median(("a", "b"), normal(1, 2)).plot().axes[0]
    assert axes.get_ylabel() == "mean"
    assert np.isfinite(axes.lines[0].get_ydata()).all()
    unknown = Lengths(("a", "b"), torch.full((1, 2), torch.nan)).plot().axes[0]
    assert [text.get_text() for text in unknown.texts] == ["unknown"]


def test_a_figure_has_the_ends_of_open_intervals_and_what_to_compare_with() -> None:
    class Open(Lengths):
        marks = (("open", 0.5, "half"),)
        in_order = False

        @property
        def estimates(self) -> Mapping[str, Estimate]:
            """Limits closer than a line is wide."""
            return {"open": Estimate.between(self.lengths, self.lengths + 1e-9)}

    axes = Open(("a", "b"), normal(1, 2)).plot().axes[0]
    assert axes.lines[0].get_linestyle() == "None"  # nothing joins the places
    assert [line.get_marker() for line in axes.lines[1:3]] == ["_", "_"]
    assert axes.lines[3].get_ydata() == [0.5, 0.5]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["half"]


def test_long_names_stay_apart_beside_the_axis_and_shares_of_0_have_their_whole_range() -> None:
    names = tuple(f"blocks.{number}.att: multi_head_attention_forward" for number in range(4))
    axes, last = Lengths(names, torch.zeros(1, 4)).plot().axes
    shown = [text.get_text() for text in last.get_xticklabels()]
    assert len(set(shown)) == 4
    assert max(map(len, shown)) <= 24
    assert axes.get_ylim() == (-0.04, 1.04)


@pytest.mark.parametrize(("count", "word", "told"), [(1, "sample", "1 sample"), (2, "batch", "2 batches")])
def test_a_count_agrees_with_its_noun(count: int, word: str, told: str) -> None:
    assert number_of(count, word) == told
    assert number_of(3072, "number") == "3,072 numbers"
