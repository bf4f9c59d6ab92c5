"""The site: whole, escaped, linked, without a single outside request."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from PIL import Image

from skiplab.checks import Refused
from skiplab.reporting import pages, site, yours
from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.findings import Finding
from skiplab.reproduction.judgement import judgements, tally
from skiplab.reproduction.shipped import Picture, archive_bytes
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict
from skiplab.studies import CATALOGUE

Fabricated = Any  # conftest.Fabricated; test files do not import one another
VOID = {"meta", "link", "img", "br", "input", "rect", "line", "circle", "path"}


class Page(HTMLParser):
    """What a page links to, says and declares; fails on tags that do not nest."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.ids: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == [], path

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        fields = dict(attrs)
        self.links += [value for name, value in attrs if name in ("href", "src") and value is not None]
        self.ids += [fields["id"]] if fields.get("id") else []
        self.images += [fields] if tag == "img" else []
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def built(fabricated: Fabricated, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site of all fabricated runs; tests only read it."""
    out = tmp_path_factory.mktemp("site") / "out"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(site, "repository", lambda: REPOSITORY)
        return site.build(fabricated.catalogue, fabricated.runs, out, all_runs=fabricated.all_runs).parent


ARXIV, REPOSITORY = "https://arxiv.org/abs/", "https://example.org/lab/skiplab"


def _page(built: Path, study: str) -> Page:
    return Page(built / "studies" / study / "index.html")


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def test_every_study_has_a_page(built: Path, fabricated: Fabricated) -> None:
    assert len(list(built.rglob("index.html"))) == 1 + len(fabricated.catalogue.studies)


def test_nothing_asks_the_network(built: Path, fabricated: Fabricated) -> None:
    sources = [path for ext in ("html", "css", "js") for path in built.rglob(f"*.{ext}")]
    assert len(sources) == 1 + len(fabricated.catalogue.studies) + 2
    for path in sources:
        # A link asks nothing until somebody clicks it.
        text = path.read_text(encoding="utf-8").replace(f'href="{ARXIV}', "")
        text = text.replace(f'href="{REPOSITORY}"', "")
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", text), path


def test_every_link_leads_to_a_file(built: Path) -> None:
    for path in built.rglob("index.html"):
        page = Page(path)
        assert len(page.ids) == len(set(page.ids))
        for link in page.links:
            if link.startswith(ARXIV) or link == REPOSITORY:
                continue
            file, _, fragment = link.partition("#")
            target = (path.parent / file).resolve() if file else path
            assert target.is_file(), (path, link)
            assert built.resolve() in target.resolve().parents
            if fragment:
                assert fragment in Page(target).ids, (path, link)


def test_a_paper_s_name_leads_to_the_paper(built: Path, fabricated: Fabricated) -> None:
    for page in (Page(built / "index.html"), _page(built, fabricated.big)):
        assert f"{ARXIV}1701.09175v8" in page.links


def test_every_page_leads_to_the_repository_where_it_has_an_address(
    built: Path, fabricated: Fabricated, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert all(REPOSITORY in Page(path).links for path in built.rglob("index.html"))
    monkeypatch.setattr(site, "repository", lambda: None)
    other = site.build(fabricated.catalogue, {}, tmp_path / "out").parent
    assert not any("example.org" in path.read_text() for path in other.rglob("index.html"))


def test_cards_show_small_figures_where_there_are_any(built: Path) -> None:
    small = sorted(built.rglob("thumbnail.webp"))
    assert small
    for path in small:
        with Image.open(path) as picture:
            assert picture.width <= site.THUMBNAIL[0]
            assert picture.height <= site.THUMBNAIL[1]
    text = (built / "index.html").read_text()
    assert text.count('class="thumbnail"') == len(small)


def test_one_failed_claim_of_many_paints_no_item_red(fabricated: Fabricated) -> None:
    study = fabricated.catalogue.studies[0]
    run = fabricated.runs[study.id]
    row = dataclasses.replace(run.verdicts[0], headline=True, source="figure 1")
    rows = [dataclasses.replace(row, claim=f"claim-{number}", verdict="holds") for number in range(19)]
    rows.append(dataclasses.replace(row, claim="claim-19", verdict="contradicted"))
    shares = pages.item(study, dataclasses.replace(run, verdicts=rows))["shares"]
    assert shares == {"holds": 95, "contradicted": 5, "undecided": 0}


def test_long_pages_list_their_claims(built: Path, fabricated: Fabricated) -> None:
    for study in fabricated.catalogue.studies:
        text = (built / "studies" / study.id / "index.html").read_text()
        long = len(study.claims) > 3
        assert ('class="contents"' in text) == long
        for claim in study.claims:  # an anchor to copy, and a line of the contents
            assert text.count(f'href="#claim-{claim.id}"') == 1 + long


def test_every_claim_and_verdict_is_shown(built: Path, fabricated: Fabricated) -> None:
    for study in fabricated.catalogue.studies:
        text = _squeezed(_page(built, study.id).text)
        assert _squeezed(study.title) in text
        for claim in study.claims:
            assert _squeezed(claim.text) in text
        for verdict in fabricated.verdicts.get(study.id, []):
            assert _squeezed(verdict.condition or "all") in text
            assert f"{pages.STATE_SIGNS[verdict.verdict]} {verdict.verdict}" in text


def test_a_study_page_tells_the_whole_story(built: Path, fabricated: Fabricated) -> None:
    text = _squeezed(_page(built, fabricated.big).text)
    for words in (
        "paper scale with other settings, run here",
        "10 runs instead of 50, since one GPU would need more than an hour.",
        "2 settings depart from the declared paper scale",
        "deviates 50",
        "deviates 0.0005",
        "skiplab data fetch cifar10",
        "The paper does not give the initial gain",
        "Equation 12 lacks a factor of ½; we use the corrected form. Amendments",
        "What we changed after results were seen. 1 amendment, 2026-01-02 2026-01-02 The margin is one point",
        "The paper's own figure, as its text describes it The text says that the fraction falls",
        "skiplab run orhan2018/figure-3 --scale paper --runs 10 --set lr=0.001",
        "And as declared, with all that this run left out: skiplab run orhan2018/figure-3 --scale paper",
        "77d76870aa11+",
        "torch 2.13.0",
        "fabricated/train",
        "This run has no numbers for this claim.",
        "quick-older",
        "2 further conditions in numbers",
        "How much conditions matter: 2 further ones, not judged",
        "? undecided the paper, figure 3 p after Holm",
        "1.1 to 5.3 (98.8 %)",
        "0.0120 ± 0.00120",
        "−∞ to 0.0127",
        "Holds where the difference of means is above −1 points.",
    ):
        assert words in text, words


def test_headline_rows_come_before_further_ones(built: Path, fabricated: Fabricated) -> None:
    html = (built / "studies" / fabricated.big / "index.html").read_text(encoding="utf-8")
    headline, details, further = (
        html.index(part) for part in (">CIFAR-10<", "<details>", ">CIFAR-10, gain 0.3<")
    )
    assert headline < details < further


def test_figures_have_words_and_a_missing_one_is_said(built: Path, fabricated: Fabricated) -> None:
    (image,) = _page(built, fabricated.big).images
    assert image["src"] == "figure.svg"
    alt = str(image["alt"])
    assert "Figure 3 of Orhan & Pitkow (2018)" in alt
    assert fabricated.catalogue[fabricated.big].caption in alt
    judged = [each for each in judgements(fabricated.verdicts[fabricated.big]) if each.deciding.statistic]
    assert f"{judged[0].text} {Finding(judged[0]).evidence}" in alt
    assert int(str(image["width"])) == round(1.25 * 96 * 6.4)
    missing = _page(built, "orhan2018/figure-4")
    assert missing.images == []
    assert "This run left no figure." in missing.text


def test_a_published_picture_is_shown_and_offered(built: Path) -> None:
    page = _page(built, "balduzzi2017/figure-1")
    (image,) = page.images
    assert image["src"] == "figure.webp"
    assert "Figure 1 of Balduzzi et al. (2017), White and brown gradients" in str(image["alt"])
    assert page.links.count("figure.webp") == 3  # the picture, its enlargement, the download
    assert not {"figure.svg", "figure.png"} & set(page.links)


def test_a_heavy_drawing_gives_way_to_its_bitmap(
    fabricated: Fabricated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "LARGEST_SVG", 100)
    page = _page(site.build(fabricated.catalogue, fabricated.runs, tmp_path / "out").parent, fabricated.big)
    assert [image["src"] for image in page.images] == ["figure.png"]
    assert "figure.svg" in page.links


def test_a_drawing_that_ships_in_an_archive_is_shown(fabricated: Fabricated, tmp_path: Path) -> None:
    name = "balduzzi2017/figure-1"
    drawing = b'<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt"/>'
    run = fabricated.runs[name]
    archive = run.folder.with_name("figure-1.zip")  # where its trials' table can be found
    archive.write_bytes(archive_bytes(run.content(), Picture(name, ""), {}, {}, drawing))
    runs = fabricated.runs | {name: dataclasses.replace(run, folder=archive)}
    built = site.build(fabricated.catalogue, runs, tmp_path / "site").parent
    (image,) = _page(built, name).images
    assert (image["src"], image["width"], image["height"]) == ("figure.svg", "120", "60")
    assert (built / "studies" / name / "figure.svg").read_bytes() == drawing


def test_every_study_that_was_run_offers_the_numbers_behind_its_verdicts(
    built: Path, fabricated: Fabricated
) -> None:
    for name, run in fabricated.runs.items():
        page = built / "studies" / name
        with (page / "verdicts.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        assert [row["claim"] for row in rows] == [each.claim for each in run.verdicts]
        assert "verdicts.csv" in _page(built, name).links


def test_cards_are_found_by_the_names_that_pages_show_and_by_models(fabricated: Fabricated) -> None:
    study = fabricated.catalogue[fabricated.big]
    trial = {"key": "k", "trial": "t", "version": 1, "label": "cifar100-coarse, bias-symm-break, 5 networks"}
    run = dataclasses.replace(fabricated.runs[study.id], trials=[trial])
    words = pages.item(study, run)["haystack"]
    for asked in ("cifar100-coarse", "cifar-100", "bias-symm-break"):
        assert asked in words


def test_what_was_not_run_says_how(built: Path) -> None:
    text = _squeezed(_page(built, "orhan2018/figure-7").text)
    assert "Not run yet" in text
    assert "skiplab run orhan2018/figure-7" in text
    assert "42 s at quick scale, 1 h 30 min at paper scale" in text
    assert "skiplab run orhan2018/figure-7" in Page(built / "index.html").text


def test_stale_and_published_results_carry_a_word(built: Path, fabricated: Fabricated) -> None:
    assert "Stale:" in _page(built, "orhan2018/figure-4").text
    assert "Stale:" not in _page(built, fabricated.big).text
    assert "quick scale, published with skiplab" in _squeezed(_page(built, "balduzzi2017/figure-1").text)
    index = _squeezed(Page(built / "index.html").text)
    assert "1 item is stale" in index
    assert "1 result comes with skiplab, 5 were run here." in index


def test_own_runs_beside_larger_published_ones_are_counted(fabricated: Fabricated) -> None:
    shipped = next(run for run in fabricated.runs.values() if run.published)
    mine = dataclasses.replace(shipped, published=False)
    catalogue = fabricated.catalogue
    for others, count in (
        ([], 0),
        ([shipped], 0),
        ([mine], 1),
        ([dataclasses.replace(mine, scale="smoke")], 0),
    ):
        board = pages.index(catalogue.papers, catalogue.studies, fabricated.runs, others)
        assert (board["published"], board["smaller"]) == (1, count)


def test_an_own_run_stands_beside_the_published_one(fabricated: Fabricated, tmp_path: Path) -> None:
    shipped = next(run for run in fabricated.runs.values() if run.published)
    first = judgements(shipped.verdicts)[0]
    turned = [
        dataclasses.replace(row, verdict="undecided") if row.claim == first.claim else row
        for row in shipped.verdicts
    ]
    mine = dataclasses.replace(
        shipped, published=False, scale="quick", verdicts=turned, provenance={"finished": "2026-11-17"}
    )
    older = dataclasses.replace(mine, verdicts=shipped.verdicts, provenance={"finished": "2026-11-16"})
    study = next(each for each in fabricated.catalogue.studies if each.id == shipped.study)
    found = yours.beside(study, [shipped, older, mine])
    assert found is not None
    assert found["run"] is mine
    judged = len(judgements(shipped.verdicts))
    assert (found["compared"], found["same"]) == (judged, judged - (first.verdict != "undecided"))
    assert yours.beside(study, [shipped]) is None
    assert yours.beside(study, [shipped, dataclasses.replace(mine, scale="smoke")]) is None

    page = site.build(fabricated.catalogue, fabricated.runs, tmp_path / "site", all_runs=[shipped, mine])
    index = page.read_text()
    assert f'studies/{study.id}/index.html#yours"' in index
    text = (tmp_path / "site" / "studies" / study.id / "index.html").read_text()
    assert text.index('id="yours"') < text.index("<figcaption>")
    assert "Your run beside the published one" in text


def test_the_scoreboard_counts_claims_and_ours_apart(built: Path, fabricated: Fabricated) -> None:
    rows = [verdict for verdicts in fabricated.verdicts.values() for verdict in verdicts]
    scoreboard = pages.index(fabricated.catalogue.papers, fabricated.catalogue.studies, fabricated.runs)
    # Written anew: a claim is contradicted by one headline row, holds by all, and is open otherwise.
    claims: dict[tuple[str, str, bool], set[str]] = {}
    for row in rows:
        if row.headline:
            claims.setdefault((row.study, row.claim, row.source == "ours"), set()).add(row.verdict)
    for whose, ours in (("counts", False), ("ours", True)):
        told = [found for (_, _, mine), found in claims.items() if mine == ours]
        against = sum("contradicted" in found for found in told)
        holding = sum(found == {"holds"} for found in told)
        expected = {"holds": holding, "contradicted": against, "undecided": len(told) - holding - against}
        assert scoreboard[whose] == expected
        assert sum(expected.values()) > 0
    for group in scoreboard["groups"]:
        own = [run.verdicts for study, run in fabricated.runs.items() if study.startswith(group["paper"].id)]
        told = [each for verdicts in own for each in judgements(verdicts) if not each.ours]
        assert group["counts"] == tally(told)
    assert scoreboard["amended"] == 1
    assert (scoreboard["run"], scoreboard["total"]) == (6, 8)
    with (built / "scoreboard.csv").open(encoding="utf-8", newline="") as file:
        board = list(csv.DictReader(file))
    assert [row["verdict"] for row in board] == [row.verdict if row.headline else "" for row in rows]
    waiting = [study for study in fabricated.catalogue.studies if study.id not in fabricated.runs]
    assert scoreboard["waiting"] == sum(claim.source != "ours" for study in waiting for claim in study.claims)
    assert board[-1]["condition"] == fabricated.hostile


def test_what_depends_on_the_initial_scale_or_is_too_small_is_told(
    fabricated: Fabricated, tmp_path: Path
) -> None:
    """One more row at another gain that says the reverse, and one claim contradicted by an effect too small."""
    name, rows = next((study, rows) for study, rows in fabricated.verdicts.items() if rows)
    first = dataclasses.replace(
        rows[0], claim="scale", verdict="holds", headline=True, worth=0.5, low=0.6, high=2.0
    )
    reverse = {"verdict": "contradicted", "statistic": -1.0, "low": -2.0, "high": -0.5}
    turned = dataclasses.replace(first, condition="gain 1", headline=False, other_scale=True, **reverse)
    small = dataclasses.replace(
        first, claim="small", verdict="contradicted", statistic=0.1, low=-0.1, high=0.3
    )
    run = dataclasses.replace(fabricated.runs[name], verdicts=[first, turned, small])
    catalogue = fabricated.catalogue
    board = pages.index(catalogue.papers, catalogue.studies, {name: run})
    assert (board["small"], board["turned"]) == (1, 1)
    site.build(catalogue, {name: run}, tmp_path / "site")
    index = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    assert "1 is so only because the effect is smaller than the smallest worth having" in _squeezed(index)
    assert "1 verdict depends on the initial scale" in index
    page = (tmp_path / "site" / "studies" / name / "index.html").read_text(encoding="utf-8")
    assert "depends on the initial scale: contradicted in 1 of 1 further conditions, such as gain 1" in page


def test_hostile_text_stays_text(built: Path, fabricated: Fabricated) -> None:
    for path in (built / "index.html", built / "studies" / "odd2020" / "theorem-1" / "index.html"):
        assert "<script>alert" not in path.read_text(encoding="utf-8")
        page = Page(path)
        assert _squeezed(fabricated.hostile) in _squeezed(page.text)
        assert "{{ 7 * 7 }}" in page.text


def test_downloads_hold_what_the_run_left(built: Path, fabricated: Fabricated) -> None:
    folder = built / "studies" / fabricated.big
    table = pd.read_parquet(folder / "table.parquet")
    pd.testing.assert_frame_equal(pd.read_csv(folder / "table.csv"), table, check_dtype=False)
    stored = json.loads((folder / "run.json").read_text())["verdicts"]
    assert [Verdict.from_dict(each) for each in stored] == fabricated.verdicts[fabricated.big]
    assert {"figure.svg", "figure.png", "table.csv", "table.parquet", "run.json"} <= set(
        _page(built, fabricated.big).links
    )
    long = built / "studies" / "balduzzi2017" / "figure-1"
    assert (long / "table.parquet").exists()
    assert not (long / "table.csv").exists()


def test_smoke_runs_show_no_verdicts(fabricated: Fabricated, tmp_path: Path) -> None:
    catalogue = fabricated.catalogue
    smoke = next(run for run in fabricated.all_runs if run.scale == "smoke")
    text = _squeezed(
        _page(site.build(catalogue, {fabricated.big: smoke}, tmp_path / "out").parent, fabricated.big).text
    )
    assert "its verdicts are not shown" in text
    assert not re.search("[✓✗?] (holds|contradicted|undecided)", text)


def test_building_again_changes_no_byte_and_leaves_nothing_beside(
    fabricated: Fabricated, tmp_path: Path
) -> None:
    contents = []
    for _ in range(2):
        site.build(fabricated.catalogue, fabricated.runs, tmp_path / "out", all_runs=fabricated.all_runs)
        files = sorted(path for path in (tmp_path / "out").rglob("*") if path.is_file())
        contents.append([(path, path.read_bytes()) for path in files])
    assert contents[0] == contents[1]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_catalogue_still_gives_a_page(fabricated: Fabricated, tmp_path: Path) -> None:
    index = site.build(Catalogue((), ()), fabricated.runs, tmp_path / "out")
    text = Page(index).text
    assert "this version of skiplab has no such study" in text
    assert fabricated.big in text


def test_a_folder_with_other_things_is_not_replaced(fabricated: Fabricated, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(Refused, match="holds something other than a report; choose a new or an empty folder"):
        site.build(fabricated.catalogue, fabricated.runs, tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_ids_that_lead_elsewhere_are_refused(fabricated: Fabricated, tmp_path: Path) -> None:
    catalogue = fabricated.catalogue
    for name, message in (("../x", "cannot name a folder"), ("other2021/figure-1", "belongs to no paper")):
        study = dataclasses.replace(fabricated.catalogue.studies[0], id=name)
        with pytest.raises(Refused, match=message):
            site.build(Catalogue(catalogue.papers, [study]), {}, tmp_path / "out")


def test_a_newer_version_of_a_trial_makes_its_results_stale(
    fabricated: Fabricated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "versions_at_hand", lambda: {"fabricated/train": 3})
    built = site.build(fabricated.catalogue, fabricated.runs, tmp_path / "out").parent
    for study in (fabricated.big, "orhan2018/figure-5"):
        assert "Stale:" in _page(built, study).text
    assert "6 items are stale" in _squeezed(Page(built / "index.html").text)


def test_amendments_are_folded_with_those_first_that_changed_a_verdict() -> None:
    study = CATALOGUE["orhan2017/figure-7"]
    told = pages.amendments(study)
    assert [each.line for each in told["every"]] != list(study.amendments)
    assert sorted(each.line for each in told["every"]) == sorted(study.amendments)  # none is lost
    turning = [bool(each.changes) for each in told["every"]]
    assert turning == sorted(turning, reverse=True)
    assert sum(turning) == told["turning"] > 0
    for half in (True, False):
        dates = [each.date for each in told["every"] if bool(each.changes) == half]
        assert dates == sorted(dates, reverse=True)


def test_a_page_shows_old_and_new_verdicts_of_amendments_and_leads_to_the_claims(
    fabricated: Fabricated, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = fabricated.catalogue.studies[0]
    claim = study.claims[0].id
    lines = (
        "2026-01-01: Old.",
        f"2026-01-03: New. Verdicts: {claim} holds → undecided, gone (one row) holds → contradicted.",
    )
    monkeypatch.setattr(Study, "amendments", property(lambda each: lines if each.id == study.id else ()))
    site.build(fabricated.catalogue, fabricated.runs, tmp_path / "out", all_runs=fabricated.all_runs)
    text = (tmp_path / "out" / "studies" / study.id / "index.html").read_text()
    part = text.partition('id="amendments"')[2].partition("</section>")[0]
    words = _squeezed(re.sub(r"<[^>]*>", "", part))
    assert "2 amendments, 2026-01-01 to 2026-01-03; 1 of them changed a verdict" in words
    assert f"{claim} ✓ holds → ? undecided" in words
    assert "gone (one row) ✓ holds → ✗ contradicted" in words
    assert part.index("New.") < part.index("Old.")
    assert f'href="#claim-{claim}"' in part
    assert 'href="#claim-gone"' not in part
    assert "<details>" in part


def test_settings_that_deviate_come_first(fabricated: Fabricated) -> None:
    run = fabricated.runs[fabricated.big]
    declared = [each["declared"] is None for each in pages.settings(run)]
    assert not declared[0]
    assert declared == sorted(declared)
