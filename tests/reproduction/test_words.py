"""A study's Markdown file is read as it is meant, or refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from skiplab.checks import Refused
from skiplab.reproduction.study import Study
from skiplab.reproduction.words import Erratum, Words, beside, errata_of, read

WHOLE = """# A title [with brackets]

## Caption

One line of
it.
[panels](shared.md#panels)

And a paragraph.

## The paper says

That it is so.

## Choices

- Ours, over
  two lines.
- [both](shared.md#both-of-them)
- First.
  [panels](shared.md#panels)
  Last.

## Errata

- Wrong. (`tests/one.py`, `tests/two.py`)
- Wrong (as said).

## Amendments

- 2026-01-02: Changed.
"""
SHARED = """# Shared

## Panels

(a) Dots.

## Both of them!

- This is ours.
- [again](#none)
"""


def written(folder: Path, text: str, shared: str = SHARED.replace("[again](#none)", "So is this.")) -> str:
    """The path of a declaration in a fresh folder, with words beside it."""
    (folder / "shared.md").write_text(shared, encoding="utf-8")
    (folder / "figure_1.md").write_text(text, encoding="utf-8")
    return str(folder / "figure_1.py")


def test_every_section_is_read_and_links_stand_for_text(tmp_path: Path) -> None:
    assert read(written(tmp_path, WHOLE)) == Words(
        title="A title [with brackets]",
        caption="One line of it. (a) Dots. And a paragraph.",
        described="That it is so.",
        choices=("Ours, over two lines.", "This is ours.", "So is this.", "First. (a) Dots. Last."),
        errata=(Erratum("Wrong.", "`tests/one.py`, `tests/two.py`"), Erratum("Wrong (as said).")),
        amendments=("2026-01-02: Changed.",),
    )


def test_a_caption_is_enough(tmp_path: Path) -> None:
    words = read(written(tmp_path, "# T\n## Caption\nC."))
    assert words == Words("T", "C.", "", (), (), ())


def test_a_shared_section_is_read_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "shared.md").write_text("# T\n## Whole paper\n- All of it. (`tests/one.py`)\n")
    assert errata_of(tmp_path / "shared.md", "Whole paper") == (Erratum("All of it.", "`tests/one.py`"),)
    assert errata_of(tmp_path / "shared.md", "Nothing") == ()


def test_a_file_has_its_own_words_or_those_of_its_folder(tmp_path: Path) -> None:
    declared = str(tmp_path / "study.py")
    assert beside(declared) == tmp_path / "study.md"
    (tmp_path / "words.md").touch()
    assert beside(declared) == tmp_path / "words.md"
    (tmp_path / "study.md").touch()
    assert beside(declared) == tmp_path / "study.md"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "figure_1.md must start with its title"),
        ("## Caption\nC.", "figure_1.md must start with its title"),
        ("# T\n## Choices\n- C.", "figure_1.md has no section Caption"),
        ("# T\nlost\n## Caption\nC.", "figure_1.md has a line before its first section: lost"),
        ("# T\n## Captoin\nC.", "heading of figure_1.md 'Captoin' is unknown.*Did you mean Caption"),
        ("# T\n##Caption\nC.", "figure_1.md has a heading that is not '## ' and a name: ##Caption"),
        ("# T\n## Caption\nC.\n### Errata\n- E.", "figure_1.md has a heading that is not"),
        ("# T\n## Caption\nC.\n## Caption\nC.", "figure_1.md has two sections Caption"),
        ("# T\n## Caption\nC.\n## Choices\nNo bullet.", "Choices of figure_1.md must be bullets"),
        (
            "# T\n## Caption\n[p](shared.md#panel)",
            "figure_1.md links to shared.md#panel, which has no such section. Did you mean panels",
        ),
        ("# T\n## Caption\n[p](share.md#panels)", "share.md is missing.*Did you mean shared.md"),
        ("# T\n## Caption\nSee [p](shared.md#panels).", "link that does not fill its line: See"),
        ("# T\n## Caption\n[p](shared.md)", "link that does not fill its line"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        read(written(tmp_path, text))


def test_sections_that_link_in_a_circle_are_refused(tmp_path: Path) -> None:
    circle = "# S\n## One\n[two](shared.md#two)\n## Two\n[one](shared.md#one)"
    declared = written(tmp_path, "# T\n## Caption\n[one](shared.md#one)", circle)
    with pytest.raises(Refused, match=r"shared.md#one links to itself"):
        read(declared)


def test_a_study_without_words_says_where_they_belong(tmp_path: Path) -> None:
    study = Study("p/figure-1", str(tmp_path / "figure_1.py"), {}, [], lambda results: None, [], {})
    with pytest.raises(Refused, match=r"figure_1.md is missing, and a study's words stand there"):
        _ = study.title


@pytest.mark.parametrize(
    ("name", "item"),
    [
        ("figure-7", "Figure 7"),
        ("figure-S1", "Figure S1"),
        ("section-2.5", "Section 2.5"),
        ("proposition-A1", "Proposition A1"),
        ("theorems", "Theorems"),
    ],
)
def test_the_item_follows_from_the_id(name: str, item: str) -> None:
    study = Study(f"p/{name}", __file__, {}, [], lambda results: None, [], {})
    assert (study.paper, study.item) == ("p", item)
