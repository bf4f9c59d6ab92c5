"""tools/readme.py: data sets have titles on its pages, and what waits for a run is counted once."""

from __future__ import annotations

import re

from oracles.tools_by_path import tool
from skiplab.reporting.pages import index
from skiplab.reproduction.claim import OURS
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.scoreboard import yet_to_run
from skiplab.reproduction.verdict import Verdict
from skiplab.studies import CATALOGUE

TOOL = tool("readme")
ROW = Verdict(
    *(
        "paper2000/figure-1",
        "rises",
        "cifar100-coarse, gain 1",
        "contradicted",
        -2.0,
        -3.0,
        -1.0,
        0.0,
        0.01,
        0.02,
    ),
    *(0.025, None, 8, "paper", "greater", "It rises."),
)


def test_the_scoreboard_shows_conditions_with_the_titles_of_data_sets() -> None:
    (judged,) = judgements([ROW])
    assert "`paper2000/figure-1`, CIFAR-100 (20 labels), gain 1: " in TOOL._bullet(ROW.study, judged)


def test_claims_of_studies_without_a_run_are_the_papers_own_and_those_that_the_site_counts() -> None:
    first, *others = CATALOGUE.studies
    own = {study.id: sum(claim.source != OURS for claim in study.claims) for study in others}
    waiting = yet_to_run(CATALOGUE.studies, {first.id})
    assert waiting == {study: number for study, number in own.items() if number}
    assert index(CATALOGUE.papers, CATALOGUE.studies, {})["waiting"] == sum(
        yet_to_run(CATALOGUE.studies, {}).values()
    )


def test_the_sentence_on_diagnosis_counts_what_the_page_counts() -> None:
    told = re.findall(r"(\d+) (?:of \d+ )?(?:are named|are blamed)", TOOL.validated())
    lines = TOOL.VALIDATION.read_text().splitlines()
    (named,) = (line.split(" | ")[1] for line in lines if line.startswith("| Unprepared data |"))
    (spared,) = (line.split(" | ")[1] for line in lines if line.startswith("| Harmless data |"))
    right, whole = map(int, spared.split(" of "))
    assert told == [named.split(" of ")[0], str(whole - right)]
