"""Published claims in sentences, as README and the scoreboard tell them."""

from __future__ import annotations

from skiplab.reproduction.findings import Finding
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.store import StudyRun, published
from skiplab.reproduction.verdict import SIGNS
from skiplab.studies import CATALOGUE


def shown_runs() -> dict[str, StudyRun]:
    """The published run of every study that has one."""
    found: dict[str, StudyRun] = {}
    for run in published().runs():
        found.setdefault(run.study, run)
    return {study.id: found[study.id] for study in CATALOGUE if study.id in found}


def judged_of(paper: str = "") -> list[Judgement]:
    """The claims of published runs, of one paper or all; the papers' own and ours."""
    return [
        each
        for study, run in shown_runs().items()
        if study.startswith(paper)
        for each in judgements(run.verdicts)
    ]


def sentence(finding: Finding) -> str:
    """A claim with its verdict, the number that decides and where it is from."""
    return f"{SIGNS[finding.verdict]} *{finding.text}* {finding.evidence} (`{finding.judged.study}`)"
