"""A reader's own run of a study beside the one that ships with skiplab: claim by claim, and its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from skiplab.reporting import pages
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study


def own_run(study: str, all_runs: Sequence[StudyRun]) -> StudyRun | None:
    """The run of a study that was finished here last, above smoke scale, or None."""
    here = [run for run in all_runs if run.study == study and not run.published and run.scale != "smoke"]
    return max(here, key=lambda run: str(run.provenance.get("finished", "")), default=None)


def published_run(study: str, all_runs: Sequence[StudyRun]) -> StudyRun | None:
    """The run of a study that ships with skiplab, or None."""
    return next((run for run in all_runs if run.study == study and run.published), None)


def beside(study: Study, all_runs: Sequence[StudyRun]) -> dict[str, Any] | None:
    """What a page shows of the reader's own run: each claim's verdict there and in the published one, if any."""
    own = own_run(study.id, all_runs)
    if own is None:
        return None
    ours, shipped = _by_claim(own), _by_claim(published_run(study.id, all_runs))
    claims: list[dict[str, Any]] = [
        {"id": claim.id, "text": claim.text, "here": here, "shipped": shipped.get(claim.id)}
        for claim in study.claims
        if (here := ours.get(claim.id)) is not None
    ]
    both = [each for each in claims if each["shipped"] is not None]
    return {
        "run": own,
        "origin": pages.origin(own),
        "finished": str(own.provenance.get("finished", "")),
        "counts": pages.counts_of(own)["paper"],
        "claims": claims,
        "compared": len(both),
        "same": sum(each["here"].verdict == each["shipped"].verdict for each in both),
        "is_shipped": published_run(study.id, all_runs) is not None,
    }


def every(studies: Sequence[Study], all_runs: Sequence[StudyRun]) -> list[dict[str, Any]]:
    """The reader's own runs for the front page, the last one first."""
    found = [
        known
        | {"study": study, "href": f"studies/{study.id}/index.html{'#yours' if known['is_shipped'] else ''}"}
        for study in studies
        if (known := beside(study, all_runs)) is not None
    ]
    return sorted(found, key=lambda each: each["finished"], reverse=True)


def _by_claim(run: StudyRun | None) -> Mapping[str, Judgement]:
    return {each.claim: each for each in judgements(pages.verdicts_of(run))}
