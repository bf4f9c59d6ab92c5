"""README's part on what we found: a minute's reading, per paper one claim for and one against it."""

from __future__ import annotations

from collections.abc import Sequence

from pages.claims import judged_of, shown_runs, tallied
from skiplab.reproduction.findings import in_short
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.study import Paper
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, SIGNS
from skiplab.studies import CATALOGUE


def found() -> str:
    """How the papers' claims came out; per paper its idea, its counts, one claim for and one against it."""
    every = [each for each in judged_of() if not each.ours]
    parts = [
        f"Of the papers' {len(every)} claims {tallied(every)}{waits(every)}. Of each paper one claim that holds and, "
        "if there is one, one that is contradicted, with the number that decides it and the interval of its test:",
        "\n".join(map(of_paper, CATALOGUE.papers)),
        f"{reversed_at_other_scales(every)} {shared_runs()}",
    ]
    return "\n\n".join(parts).strip()


def of_paper(paper: Paper) -> str:
    """A paper's idea and counts, and below it one claim for and one against it, a line each."""
    own = [each for each in judged_of(paper.id) if not each.ours]
    idea = paper.explains[0].lower() + paper.explains[1:]
    lines = [f"- **{paper.id}**: {idea} Of its claims {tallied(own)}."]
    for each in in_short(paper, shown_runs()):
        claim = f"{SIGNS[each.verdict]} *{each.text.removesuffix('.')}*"
        scale = "; depends on the initial scale" if each.judged.turned else ""
        lines.append(f"  {claim}: {each.number}{scale} (`{each.judged.study}`)")
    return "\\\n".join(lines)  # a backslash breaks the line within the bullet


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


def shared_runs() -> str:
    """How many claims of a later paper rest mostly on runs that an earlier paper's claims rest on, too."""
    runs, order = shown_runs(), [paper.id for paper in CATALOGUE.papers]
    keys = {study: {each["key"] for each in run.trials} for study, run in runs.items()}
    items, claims = [], 0
    for study, own in keys.items():
        earlier = order[: order.index(study.partition("/")[0])]
        before = set().union(*(found for other, found in keys.items() if other.partition("/")[0] in earlier))
        if own and 2 * len(own & before) >= len(own):
            items.append(f"`{study}`")
            claims += sum(not each.ours for each in judgements(runs[study].verdicts))
    if not items:
        return ""
    named = ", ".join(items)
    return f"Of the runs behind {claims} claims ({named}) half or more are an earlier paper's, too."
