"""What the Markdown files of all studies must satisfy together."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from skiplab import studies
from skiplab.reproduction.amendments import MARK, Amendment
from skiplab.reproduction.study import Study
from skiplab.reproduction.words import beside, read, slug
from skiplab.studies import CATALOGUE

ROOT = Path(__file__).parents[2]
STUDIES = Path(studies.__file__).parent
FILES = sorted(STUDIES.rglob("*.md"))
LINK = re.compile(r"^(?:- |  )?\[[^]]+\]\(([^)#]+)#([^)]+)\)$", flags=re.MULTILINE)
UNTIED = "not-tied-to-one-item"  # printed by tools/errata.py, and in no study
every_study = pytest.mark.parametrize("study", list(CATALOGUE), ids=lambda study: study.id)


def links(path: Path) -> list[tuple[Path, str]]:
    """The file and section of every link in a file."""
    return [
        ((path.parent / file).resolve(), anchor) for file, anchor in LINK.findall(path.read_text("utf-8"))
    ]


def is_shared(path: Path) -> bool:
    return path.name == "shared.md" or path.parent.name == "shared"


@every_study
def test_words_are_whole(study: Study) -> None:
    words = read(study.words)
    for erratum in words.errata:
        for test in re.findall(r"`([^`]+)`", erratum.tests):
            assert (ROOT / test).is_file(), test
    for amendment in words.amendments:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d: .*\.", amendment), amendment
        Amendment.of(amendment)  # refuses verdicts that it cannot read


def test_every_file_belongs_to_a_study_or_is_shared() -> None:
    owned = {beside(study.words) for study in CATALOGUE}
    assert [path for path in FILES if path not in owned and not is_shared(path)] == []


def test_papers_link_to_what_they_share_and_not_to_each_other() -> None:
    for path in FILES:
        for target, _ in links(path):
            assert is_shared(target), path
            assert target.parent.name in ("shared", path.relative_to(STUDIES).parts[0]), path


def test_every_shared_section_is_used_at_least_twice() -> None:
    used = Counter(link for path in FILES for link in links(path))
    for path in filter(is_shared, FILES):
        headings = re.findall(r"^## (.*)$", path.read_text("utf-8"), flags=re.MULTILINE)
        assert [each for each in headings if slug(each) != UNTIED and used[path, slug(each)] < 2] == [], path


def test_no_sentence_stands_in_two_files() -> None:
    places = defaultdict(set)
    for path in FILES:
        folded = " ".join(LINK.sub("\n", path.read_text("utf-8")).split())
        for sentence in re.split(r"(?<=[.!?]) (?:- )?", folded):
            if len(sentence) > 40 and not sentence.startswith(MARK):
                places[sentence].add(path)
    assert [sentence for sentence, paths in places.items() if len(paths) > 1] == []
