"""docs/scoreboard.md: a row per study, the claims that carry each paper, and every claim that is contradicted."""

from __future__ import annotations

import math

from pages.claims import judged_of, sentence, shown_runs
from skiplab.reproduction.findings import Finding, findings
from skiplab.reproduction.judgement import judgements, paid
from skiplab.reproduction.scoreboard import counts, yet_to_run
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, VERDICTS
from skiplab.studies import CATALOGUE


def board() -> str:
    """docs/scoreboard.md."""
    return f"""# Scoreboard

Written by `python tools/readme.py` from what is published. Counted are the papers' claims, one verdict each: ✓ holds
in every condition that the claim speaks of, ✗ contradicted in one of them (or smaller there than the smallest effect
worth having), ? undecided. *Ours* are checks and readings of our own, which count neither for nor against a paper;
*amended* is what we changed after results were seen. [reruns.md](reruns.md) has verdicts of cheap studies over seeds.

{scoreboard()}

{waiting()}

## The claims that carry each paper

{carrying()}

## By other rules

{by_other_rules()}

## Contradicted

With the clearest condition and the place in the paper:

{contradicted()}
"""


def scoreboard() -> str:
    """A table: one row per study, the paper's claims counted by verdict, ours beside them."""
    lines = [
        "| study | what the paper shows | ✓ | ✗ | ? | ours | amended | runs on |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for study_id, run in shown_runs().items():
        study, told = CATALOGUE[study_id], counts(judgements(run.verdicts))
        cells = " | ".join(str(told["paper"][name]) for name in VERDICTS)
        ours, amended = sum(told["ours"].values()), len(study.amendments)
        own = f"{told['ours'][HOLDS]} of {ours}" if ours else ""
        size = "paper scale" if not run.deviations else "paper scale, reduced"
        place = ", ".join(run.provenance["trials_devices"])
        lines.append(
            f"| `{study_id}` | {study.title} | {cells} | {own} | {amended or ''} | {size}; {place} |"
        )
    return "\n".join(lines)


def waiting() -> str:
    """The studies of which no run is published, with their claims and what a run costs."""
    claims, items = yet_to_run(CATALOGUE.studies, shown_runs()), []
    for study in (CATALOGUE[name] for name in claims):
        minutes = math.ceil(study.cost["paper"] / 60)
        items.append(f"`{study.id}` ({claims[study.id]}; {minutes} minutes of {study.paper_device})")
    if not items:
        return ""
    total = sum(claims.values())
    return f"Not run yet at the paper's scale, and in no count: {total} claims of the papers. {', '.join(items)}."


def carrying() -> str:
    """All claims that carry each paper, with their numbers."""
    parts = [
        "\n".join(
            [f"**{paper.title}**", "", *(f"- {sentence(each)}" for each in findings(paper, shown_runs()))]
        )
        for paper in CATALOGUE.papers
    ]
    return "\n\n".join(parts)


def by_other_rules() -> str:
    """How the count would look if other things were counted, or contradictions paid for their conditions."""
    every = judged_of()
    own = [each for each in every if not each.ours]
    rows = [row for each in own for row in each.rows]
    all_rows = [row for each in every for row in (*each.rows, *each.further)]
    against = [each for each in own if each.verdict == CONTRADICTED]
    counted = {
        "the papers' claims, one verdict each": [each.verdict for each in own],
        "their headline conditions, one verdict each": [row.verdict for row in rows],
        "all rows, further conditions and ours included": [row.verdict for row in all_rows],
    }
    lines = ["| counted | ✓ | ✗ | ? |", "|---|---|---|---|"]
    for what, verdicts in counted.items():
        lines.append(f"| {what} | {' | '.join(str(verdicts.count(name)) for name in VERDICTS)} |")
    small, turned = sum(each.too_small for each in against), sum(bool(each.turned) for each in against)
    unpaid = sum(not paid(each) for each in against)
    lines += [
        "",
        "Until 2026-11-15 all rows were counted, with one family for Holm, unpaired and without a smallest effect "
        "worth having: 1,038 ✓, 279 ✗, 269 ? of 1,586 rows on 38 items of three papers.",
        "",
        f"Of the {len(against)} contradicted claims {small} are so only because the difference is smaller than the "
        f"smallest effect worth having; {turned} would hold at another initial scale of weights; {unpaid} would be "
        "undecided if a contradiction by one of n conditions had to be n times as sure (Bonferroni), which the rules "
        f"do not ask. Of the undecided claims {sum(each.waits for each in own)} are so only because runs are still "
        "to be made.",
        "",
        shared_runs(),
    ]
    return "\n".join(lines).rstrip()


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


def contradicted() -> str:
    """A line for every claim of a paper that our runs contradict, with its place in the paper."""
    against = [each for each in judged_of() if each.verdict == CONTRADICTED and not each.ours]
    return "\n".join(f"- {sentence(Finding(each))[:-1]}, {each.source})" for each in against)
