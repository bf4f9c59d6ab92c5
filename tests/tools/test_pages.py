"""tools/pages: the scoreboard tells every claim that it counts, README one for and one against each paper."""

from __future__ import annotations

import re

import pytest
from pages import claims, found, scoreboard, validation

from skiplab.reporting.pages import index
from skiplab.reproduction.claim import OURS
from skiplab.reproduction.judgement import tally
from skiplab.reproduction.scoreboard import yet_to_run
from skiplab.reproduction.study import Paper
from skiplab.studies import CATALOGUE


@pytest.mark.parametrize("paper", CATALOGUE.papers, ids=lambda paper: paper.id)
def test_a_paper_is_told_in_one_sentence_that_its_verdicts_bear_out(paper: Paper) -> None:
    sentence = found.of_paper(paper)
    own = [each for each in claims.judged_of(paper.id) if not each.ours]
    holding, against, undecided = tally(own).values()
    counts = (
        r"of (\d+) claims (\d+) hold.*; (\d+) (?:is|are) contradicted.*; and (\d+) (?:is|are) undecided\."
    )
    match = re.search(counts, sentence)
    assert match is not None
    assert [int(each) for each in match.groups()] == [len(own), holding, against, undecided]
    examples = re.findall(r"(holds?|contradicted), (?:such as|namely) \*(.*?)\* \(.+?; `(.*?)`\)", sentence)
    verdicts = []
    for told, text, study in examples:
        (claim,) = (each for each in own if (each.text.removesuffix("."), each.study) == (text, study))
        assert claim.verdict.startswith(told[:4])
        verdicts.append(claim.verdict)
    assert verdicts == ["holds"] * bool(holding) + ["contradicted"] * bool(against)
    assert "\n" not in sentence
    assert len(sentence) < 700


def test_the_scoreboard_lists_every_contradicted_claim_that_it_counts() -> None:
    own = [each for each in claims.judged_of() if not each.ours]
    lines = scoreboard.contradicted().splitlines()
    assert len(lines) == tally(own)["contradicted"]
    for each, line in zip((each for each in own if each.verdict == "contradicted"), lines, strict=True):
        assert f"*{each.text}*" in line
        assert line.endswith(f"(`{each.study}`, {each.source})")


def test_claims_of_studies_without_a_run_are_the_papers_own_and_those_that_the_site_counts() -> None:
    first, *others = CATALOGUE.studies
    own = {study.id: sum(claim.source != OURS for claim in study.claims) for study in others}
    waiting = yet_to_run(CATALOGUE.studies, {first.id})
    assert waiting == {study: number for study, number in own.items() if number}
    assert index(CATALOGUE.papers, CATALOGUE.studies, {})["waiting"] == sum(
        yet_to_run(CATALOGUE.studies, {}).values()
    )


def test_the_sentence_on_diagnosis_counts_what_the_page_counts() -> None:
    told = re.findall(r"(\d+) of (\d+) (?:changes|with which)", validation.validated())
    lines = validation.VALIDATION.read_text().splitlines()
    named, spared = (
        re.findall(r"\d+", line.split(" | ")[1])
        for kind in ("Unprepared", "Harmless")
        for line in lines
        if line.startswith(f"| {kind} data |")
    )
    assert told == [tuple(named), (str(int(spared[1]) - int(spared[0])), spared[1])]
