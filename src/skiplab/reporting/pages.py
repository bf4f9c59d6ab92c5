"""What each page shows, as plain data: the templates only place it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from skiplab.data.registry import with_titles
from skiplab.reporting import words
from skiplab.reporting.claims import claims_of
from skiplab.reproduction.amendments import in_order
from skiplab.reproduction.findings import Finding, findings
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.numerals import NOTHING
from skiplab.reproduction.scoreboard import counts, yet_to_run
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Paper, Study
from skiplab.reproduction.trial import versions_at_hand
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, SIGNS, UNDECIDED, VERDICTS, Verdict

NOT_RUN, NO_CLAIMS = "not-run", "no-claims"
# A sign beside the colour and the word, so that none of them carries the meaning alone.
STATE_SIGNS = SIGNS | {NOT_RUN: "○", NO_CLAIMS: "•"}
STATES = {
    HOLDS: "every claim of the paper holds",
    CONTRADICTED: "a claim of the paper is contradicted",
    UNDECIDED: "a claim of the paper is undecided, none contradicted",
    NOT_RUN: "not run yet",
    NO_CLAIMS: "shown, without claims of the paper to judge",
}


def verdicts_of(run: StudyRun | None) -> list[Verdict]:
    """Return a run's verdicts, none at smoke scale, where they would mean nothing.

    Whether a verdict is stale is known only now: it was not when the run was stored.
    """
    if run is None or run.scale == "smoke":
        return []
    stale = run.stale(versions_at_hand())
    return [dataclasses.replace(verdict, stale=stale or verdict.stale) for verdict in run.verdicts]


def counts_of(run: StudyRun | None) -> dict[str, dict[str, int]]:
    """Count a run's claims by verdict: the paper's own, and apart from them ours."""
    return counts(judgements(verdicts_of(run)))


def state_of(run: StudyRun | None) -> str:
    """Sum a study up in one word; one contradicted claim weighs more than those that hold. Ours have no say."""
    if run is None:
        return NOT_RUN
    told = counts_of(run)["paper"]
    return next((each for each in (CONTRADICTED, UNDECIDED, HOLDS) if told[each]), NO_CLAIMS)


def is_stale(run: StudyRun | None) -> bool:
    """Whether a run comes from an older version of its trials."""
    if run is None:
        return False
    return run.stale(versions_at_hand()) or any(verdict.stale for verdict in run.verdicts)


def item(study: Study, run: StudyRun | None) -> dict[str, Any]:
    """Return a study's entry on the scoreboard."""
    counted = counts_of(run)
    state = state_of(run)
    stale = is_stale(run)
    found = [each for each in VERDICTS if counted["paper"][each]] or [state]
    claims = " ".join(claim.text for claim in study.claims)
    conditions = " ".join(dict.fromkeys(row.condition for row in (run.verdicts if run else ())))
    sets = " ".join(name for each in study.settings.values() for name in getattr(each, "data", ()))
    # Labels of trials name data sets and models.
    trained = " ".join(dict.fromkeys(each["label"] for each in (run.trials if run else ())))
    judged = sum(counted["paper"].values())
    found_by = f"{study.id} {study.item} {study.title} {claims} {sets} {trained} {conditions}"
    return {
        "id": study.id,
        "paper": study.paper,
        "label": study.item,
        "title": study.title,
        "href": f"studies/{study.id}/index.html",
        "state": state,
        "sign": STATE_SIGNS[state],
        "meaning": STATES[state],
        "counts": counted["paper"],
        "shares": {each: round(100 * counted["paper"][each] / judged) if judged else 0 for each in VERDICTS},
        "ours": counted["ours"],
        "amended": len(study.amendments),
        "stale": stale,
        "origin": origin(run) if run else "",
        "filter": " ".join([*found, *(["stale"] if stale else [])]),
        "haystack": f"{found_by} {with_titles(found_by)}".lower(),
        "command": f"skiplab run {study.id}",
        "cost": words.duration(study.cost["quick"]) if "quick" in study.cost else "",
    }


def origin(run: StudyRun) -> str:
    """Say at which scale a run was made and whether it came with the package."""
    changed = " with other settings" if run.deviations else ""
    return f"{run.scale} scale{changed}, {'published with skiplab' if run.published else 'run here'}"


def index(
    papers: Sequence[Paper],
    studies: Sequence[Study],
    runs: Mapping[str, StudyRun],
    all_runs: Sequence[StudyRun] = (),
) -> dict[str, Any]:
    """Return what the scoreboard shows."""
    groups: list[dict[str, Any]] = []
    for paper in papers:
        items = [item(study, runs.get(study.id)) for study in studies if study.paper == paper.id]
        tallied = {each: sum(entry["counts"][each] for entry in items) for each in VERDICTS}
        groups.append({"paper": paper, "items": items, "counts": tallied, "findings": findings(paper, runs)})
    every = [entry for group in groups for entry in group["items"]]
    judged = [
        each for entry in every for each in judgements(verdicts_of(runs.get(entry["id"]))) if not each.ours
    ]
    shipped = {entry["id"] for entry in every if entry["id"] in runs and runs[entry["id"]].published}
    return {
        "groups": groups,
        "total": len(every),
        "run": sum(entry["state"] != NOT_RUN for entry in every),
        "stale": sum(entry["stale"] for entry in every),
        "counts": {each: sum(group["counts"][each] for group in groups) for each in VERDICTS},
        "ours": {each: sum(entry["ours"][each] for entry in every) for each in VERDICTS},
        "small": sum(each.too_small for each in judged),
        "turned": sum(bool(each.turned) for each in judged),
        "unrun": sum(each.waits for each in judged),
        "waiting": sum(yet_to_run(studies, runs).values()),
        "amended": sum(entry["amended"] for entry in every if entry["state"] != NOT_RUN),
        "published": len(shipped),
        "smaller": len(
            shipped & {each.study for each in all_runs if not each.published and each.scale != "smoke"}
        ),
    }


def settings(run: StudyRun) -> list[dict[str, Any]]:
    """Return the run's settings; those that depart from the declaration carry the declared value and come first."""
    fields = {name: value for name, value in run.settings.items() if name != "reduction"}
    fields.update({name: each["used"] for name, each in run.deviations.items() if name not in fields})
    return [
        {
            "name": name,
            "value": words.setting(fields[name]),
            "declared": words.setting(run.deviations[name]["declared"]) if name in run.deviations else None,
        }
        for name in sorted(fields, key=lambda name: name not in run.deviations)
    ]


def provenance(run: StudyRun) -> list[tuple[str, str]]:
    """Return what made the numbers, as pairs of a name and a value."""
    rows = [("run", run.name), ("where", "published with skiplab" if run.published else "run here")]
    for name, value in run.provenance.items():
        label = name.replace("_", " ")
        if isinstance(value, Mapping):
            rows.append((label, ", ".join(f"{key} {each}" for key, each in value.items()) or NOTHING))
        elif name == "trials_seconds":
            rows.append(("time of its trials", words.duration(value)))
        elif name != "seconds":
            rows.append((label, words.setting(value)))
    return [*rows, ("time", words.duration(run.seconds))]


def study_page(
    study: Study, paper: Paper | None, run: StudyRun | None, others: Sequence[StudyRun]
) -> dict[str, Any]:
    """Return what a study's page shows besides its files."""
    shown = verdicts_of(run)
    page: dict[str, Any] = {
        "study": study,
        "paper": paper,
        "run": run,
        "state": state_of(run),
        "sign": STATE_SIGNS[state_of(run)],
        "counts": counts_of(run)["paper"],
        "ours": counts_of(run)["ours"],
        "stale": is_stale(run),
        "claims": claims_of(study, shown),
        "amendments": amendments(study),
        "costs": [_cost(study, scale, cost) for scale, cost in study.cost.items() if scale != "smoke"],
        "others": [_other(each) for each in others],
        "command": f"skiplab run {study.id}",
    }
    if run is not None:
        # The trials may have run on a GPU and the study have been judged again on a CPU.
        devices = run.provenance.get("trials_devices") or [run.provenance.get("device", "CPU")]
        gpu = any("CPU" not in device for device in devices)
        away = run.scale == "paper" and study.paper_device != "cpu"
        page |= {
            "origin": origin(run),
            "settings": settings(run),
            "reduction": str(run.settings.get("reduction") or run.provenance.get("reduction") or ""),
            "provenance": provenance(run),
            "command": words.command(study.id, run.scale, run.deviations, gpu),
            "declared": words.command(study.id, run.scale, {}, away),
        }
    return page


def amendments(study: Study) -> dict[str, Any]:
    """What was changed after results were seen: all of it in a reader's order, counted, and from when to when."""
    every = in_order(study.amendments)
    days = sorted({each.date for each in every})
    return {
        "every": every,
        "days": " to ".join(dict.fromkeys((days[0], days[-1]))) if days else "",
        "turning": sum(bool(each.changes) for each in every),
        "claims": {claim.id for claim in study.claims},
    }


TOLD = 6  # claims in the words that stand for a figure


def seen(study: Study, paper: Paper, run: StudyRun | None) -> str:
    """What a study's figure shows, for those who cannot see it: its caption, and the numbers behind its claims."""
    told = [Finding(each) for each in judgements(verdicts_of(run)) if each.deciding.statistic is not None]
    claims = [f"{each.text} {each.evidence}" for each in told[:TOLD]]
    whose = f"{study.item} of {paper.authors} ({paper.year}), {study.title}, from our runs."
    more = f"The page has {len(told) - TOLD} more claims." if len(told) > TOLD else ""
    return " ".join(part for part in (whose, study.caption, *claims, more) if part)


def _cost(study: Study, scale: str, seconds: float) -> str:
    where = f" on {study.paper_device}" if scale == "paper" and study.paper_device != "cpu" else ""
    return f"{words.duration(seconds)} at {scale} scale{where}"


def _other(run: StudyRun) -> dict[str, Any]:
    changed = [f"{name} = {words.setting(each['used'])}" for name, each in run.deviations.items()]
    return {
        "name": run.name,
        "origin": origin(run),
        "counts": counts_of(run)["paper"],
        "stale": is_stale(run),
        "finished": str(run.provenance.get("finished", "")),
        "deviations": ", ".join(changed),
    }
