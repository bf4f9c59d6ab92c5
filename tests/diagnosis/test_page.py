"""A report as one HTML file: what it says, that it asks for nothing, and what it never writes over."""

from __future__ import annotations

import dataclasses
import math
import os
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from oracles.made_up_reports import DEAD, SHALLOW, VANISHING, report
from skiplab.checks import Refused
from skiplab.diagnosis.chart import Examined
from skiplab.diagnosis.page import MOST_ROWS, answer, between, strip, usual_words
from skiplab.diagnosis.papers import SOURCES, sources_in
from skiplab.diagnosis.report import Report
from skiplab.diagnosis.single_page import MARKER
from skiplab.measurements.gradient_norms import GradientNorms
from skiplab.studies import CATALOGUE


class Read(HTMLParser):
    """The tags, addresses and words of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[tuple[str, str]] = []
        self.said: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [(f"{tag} {name}", value or "") for name, value in attrs if name in ("href", "src")]
        assert not any(name.startswith("on") for name, _ in attrs), attrs

    def handle_data(self, data: str) -> None:
        if self.tags[-1:] != ["style"]:
            self.said.append(data)

    @property
    def words(self) -> str:
        return " ".join(" ".join(self.said).split())


def saved(of: Report, folder: Path) -> tuple[str, Read]:
    page = of.save(folder / "page.html").read_text("utf-8")
    return page, Read(page)


def test_a_page_says_what_the_report_says(tmp_path: Path) -> None:
    found = report()
    _, page = saved(found, tmp_path)
    for sentence in (
        "1 severe and 1 warning findings",
        "Gradients fall 800-fold from the output to the input",
        "8.00 × 10⁻⁴ of the last layer's (0.00050 to 0.00120)",
        "usual: 0.1 to 30, logarithmic scale",
        "Skip Connections Eliminate Singularities (orhan2018, arXiv:1701.09175v8)",
        "Our own runs: 17 of 20 claims of orhan2018 hold in our runs",
        "skips-identity add identity skip connections",
        "model = REMEDIES['skips-identity'].apply(model, batch).model",
        "the whole network",
        "4 layers, since nothing repeats a, b, c, head (Linear)",
        "0 residual additions none",
        "loss: the criterion that was given",
        "path_depth the network has no residual branch",
    ):
        assert sentence in page.words, sentence
    assert {"✗ severe", "! warning", "· info"} <= {
        f"{m} {w}" for m, w in re.findall(r"(\S) (\w+)", page.words)
    }
    for each in found.measured:
        for line in repr(each.result).splitlines():
            assert line.strip() in page.words.replace("  ", " ")


def test_a_page_asks_for_nothing_and_runs_nothing(tmp_path: Path) -> None:
    page, read = saved(report(), tmp_path)
    assert "script" not in read.tags
    loaded = [address for what, address in read.addresses if what != "a href"]
    assert all(address.startswith("data:") for address in loaded)
    assert len([address for address in loaded if address.startswith("data:image/svg+xml")]) == 2
    links = [address for what, address in read.addresses if what == "a href"]
    assert all(link.startswith(("#", "https://arxiv.org/abs/")) for link in links)
    assert not re.search(r"url\(|@import", page)


def test_the_same_report_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = report().save(tmp_path / "one.html"), report().save(tmp_path / "two.html")
    assert first.read_bytes() == second.read_bytes()


def test_names_of_layers_cannot_write_the_page(tmp_path: Path) -> None:
    bad = "<script>alert(1)</script><img src=x onerror=alert(2)>&amp;\"'"
    hostile = dataclasses.replace(
        VANISHING, where=(bad,), words=bad, reference=bad, paper=bad, support=bad, remedy=(bad,), unit=bad
    )
    page, read = saved(report((hostile,), names=(bad, "b"), name=bad), tmp_path)
    assert "script" not in read.tags
    assert read.tags.count("img") == 2
    assert bad in read.words
    assert "onerror=alert(2)>" not in page


def test_a_name_that_is_broken_mathematics_has_its_figure(tmp_path: Path) -> None:
    _, read = saved(report((), names=("$x^$", "b")), tmp_path)
    assert read.tags.count("img") == 2


def test_a_figure_that_cannot_be_drawn_costs_itself_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(result: GradientNorms) -> None:
        raise KeyError("no room")

    monkeypatch.setattr(GradientNorms, "plot", fails)
    _, read = saved(report(()), tmp_path)
    assert read.tags.count("img") == 1
    assert "No figure: KeyError: " in read.words
    assert "Gradient norm of 4 layers" in read.words
    assert "Nothing was found that is worth telling." in read.words


def test_a_name_that_is_no_unicode_is_written_visibly(tmp_path: Path) -> None:
    _, read = saved(report(name="net\ud800"), tmp_path)
    assert "net\\ud800" in read.words


@pytest.mark.parametrize("what", ["file", "folder", "link", "link to nothing", "FIFO"])
def test_nothing_but_our_own_page_is_written_over(tmp_path: Path, what: str) -> None:
    place = tmp_path / "page.html"
    words = "is no page of skiplab's"
    if what == "file":
        place.write_text("<!doctype html>\n<p>mine")
    elif what == "folder":
        place.mkdir()
        words = "is a folder"
    elif what == "FIFO":
        os.mkfifo(place)
        words = "is a FIFO"
    else:
        place.symlink_to(tmp_path / "other.html")
        if what == "link":
            report(()).save(tmp_path / "other.html")
        words = "is a link"
    before = place.lstat()
    with pytest.raises(Refused, match=words):
        report(()).save(place)
    assert place.lstat().st_ino == before.st_ino
    if what == "file":
        assert place.read_text().endswith("mine")
    assert (tmp_path / "other.html").exists() == (what == "link")


def test_an_earlier_page_and_an_empty_file_are_replaced(tmp_path: Path) -> None:
    place = tmp_path / "new folder" / "page.html"
    report(()).save(place)
    report((DEAD,)).save(place)
    assert "3 of 4 units never act" in place.read_text("utf-8")
    assert place.read_text("utf-8").startswith(MARKER)
    (tmp_path / "empty.html").touch()
    report(()).save(tmp_path / "empty.html")
    assert (tmp_path / "empty.html").read_text("utf-8").startswith(MARKER)


def test_a_strip_shows_the_number_outside_the_usual_range() -> None:
    drawing, caption = strip(dataclasses.replace(DEAD, low=0.5, high=0.9))
    assert caption == "usual: at most 0.4"
    left, width = (
        float(n) for n in re.search(r'region" x="([\d.]+)" y="3" width="([\d.]+)"', drawing).groups()
    )
    dot = float(re.search(r'cx="([\d.]+)"', drawing).group(1))
    ends = [float(n) for n in re.search(r'interval" x1="([\d.]+)" x2="([\d.]+)"', drawing).groups()]
    assert left == 0
    assert left + width < ends[0] < dot < ends[1] <= 200
    # 12 % beyond 0.4 … 0.9 on both sides: 0.75 lies at (0.75 − 0.34) / 0.62 of 200.
    assert dot == pytest.approx(200 * (0.75 - 0.34) / 0.62, abs=0.01)


def test_ends_of_intervals_keep_their_digits() -> None:
    assert between(0.002, 3.0) == "0.0020 to 3.0"  # and not 0.0 to 3.0
    assert between(0.5, 0.9) == "0.50 to 0.90"
    assert usual_words((0.1, math.inf)) == "at least 0.1"


def test_a_strip_of_decades_is_logarithmic() -> None:
    drawing, _ = strip(dataclasses.replace(VANISHING, statistic=1e-3, low=math.nan, usual=(0.1, 10.0)))
    place = lambda value: 200 * (math.log10(value) + 3 + 0.48) / (4 + 0.96)  # noqa: E731
    dot = float(re.search(r'cx="([\d.]+)"', drawing).group(1))
    left = float(re.search(r'region" x="([\d.]+)"', drawing).group(1))
    assert (dot, left) == pytest.approx((place(1e-3), place(0.1)), abs=0.01)
    assert 'class="interval"' not in drawing


def test_what_has_no_number_or_no_range_has_no_strip() -> None:
    unknown = dataclasses.replace(DEAD, usual=(math.nan, math.nan))
    assert [strip(each)[0] for each in (SHALLOW, unknown)] == ["", ""]


def test_a_table_has_no_number_for_an_open_question() -> None:
    norms = GradientNorms(("0", "2"), torch.tensor([[0.25, 0.5]]), torch.zeros(1, 2), samples=1)
    shown = answer(Examined("gradient_norms", "do they vanish?", norms, 1.0))
    assert [row[1] for row in shown["rows"]] == ["unresolved", "unresolved"]  # one sample has no interval


def test_long_tables_are_cut_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("skiplab.diagnosis.page.MOST_ROWS", 2)
    shown = answer(report().measured[0])
    assert (len(shown["rows"]), shown["further"]) == (2, 2)
    assert MOST_ROWS > 100


def test_papers_are_those_of_the_catalogue() -> None:
    known = {paper.id: (paper.title, paper.arxiv, paper.link) for paper in CATALOGUE.papers}
    assert {each.id: (each.title, each.arxiv, each.link) for each in SOURCES.values()} == known
    found = sources_in("orhan2018/figure-4, yu2019; orhan2018 and nobody1999")
    assert [each.id for each in found] == ["orhan2018", "yu2019"]
