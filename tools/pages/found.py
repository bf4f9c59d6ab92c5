"""README's part on what we found: a sentence per paper, with one claim for it and one against it."""

from __future__ import annotations

from collections.abc import Sequence

from pages.claims import judged_of, shown_runs
from skiplab.reproduction.findings import Finding, in_short
from skiplab.reproduction.judgement import Judgement, tallied, tally
from skiplab.reproduction.study import Paper
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, VERDICTS
from skiplab.studies import CATALOGUE


def found() -> str:
    """How the papers' claims came out, one sentence per paper, and what the unstated initial scale decides."""
    every = [each for each in judged_of() if not each.ours]
    counts = f"Of the papers' {len(every)} claims {tallied(tally(every))}{waits(every)}:"
    return "\n\n".join([counts, "\n".join(map(of_paper, CATALOGUE.papers)), reversed_at_other_scales(every)])


def of_paper(paper: Paper) -> str:
    """A paper's idea and how its claims came out, with one that holds and one that is contradicted, in a sentence."""
    own = [each for each in judged_of(paper.id) if not each.ours]
    examples = {each.verdict: example(each) for each in in_short(paper, shown_runs())}
    told = [
        f"{count}{', namely' if count.startswith('1 ') else ', such as'} {examples[verdict]}"
        if verdict in examples
        else count
        for verdict, count in zip(VERDICTS, tallied(tally(own)).split(", "), strict=True)
    ]
    idea = paper.explains[0].lower() + paper.explains[1:].removesuffix(".")
    return f"- **{paper.id}** ({idea}): of {len(own)} claims {told[0]}; {told[1]}; and {told[2]}."


def example(finding: Finding) -> str:
    """A claim with the number that decides it and the interval of its test."""
    scale = "; depends on the initial scale" if finding.judged.turned else ""
    return f"*{finding.text.removesuffix('.')}* ({finding.number}{scale}; `{finding.judged.study}`)"


def waits(judged: Sequence[Judgement]) -> str:
    """How many of the undecided claims are so only because runs are still to be made."""
    waiting = sum(each.waits for each in judged)
    return f", {waiting} of these only because runs are still to be made" if waiting else ""


def reversed_at_other_scales(judged: Sequence[Judgement]) -> str:
    """How many verdicts another initial scale of weights would reverse."""
    holding, against = (
        sum(each.verdict == verdict and bool(each.turned) for each in judged)
        for verdict in (HOLDS, CONTRADICTED)
    )
    return (
        "Orhan's papers do not state the initial scale of weights: we judge at each network's best or at one for "
        f"all. At another scale {holding} of the claims that hold and {against} of those contradicted are reversed."
    )
