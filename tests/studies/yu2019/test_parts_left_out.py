"""Runs without controls, doses or full networks: what they would tell stays open, the rest is judged and drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from skiplab.reproduction.runner import drawn, run_study
from skiplab.reproduction.store import Store
from skiplab.reproduction.verdict import UNDECIDED
from skiplab.studies import CATALOGUE
from skiplab.studies.yu2019.pairs import PairSettings, is_papers

LEFT_OUT: dict[str, tuple[dict[str, Any], set[str]]] = {
    "yu2019/table-4": ({"controls": False}, {"gap-without-decay"}),
    "yu2019/figure-12": (
        {"fully_fledged": False},
        {
            "full-above-plain-at-first",
            "full-alike-at-the-end",
            "full-as-simplified",
            "full-closer-in-shallow-layers",
        },
    ),
    "yu2019/interlayer-cushion": (
        {"fully_fledged": False},
        {"residual-larger-cushion", "printed-residual"},
    ),
    "yu2019/noise": ({"dosed": False}, {"dose-raises-cushion", "dose-lowers-noise", "shuffled-as-stable"}),
}


@pytest.mark.slow
@pytest.mark.parametrize("study_id", LEFT_OUT)
def test_what_is_left_out_stays_open(study_id: str, tmp_path: Path) -> None:
    study = CATALOGUE.select([study_id])[0]
    overrides, claims = LEFT_OUT[study_id]
    assert claims <= {claim.id for claim in study.claims}
    run = run_study(study, Store(tmp_path), scale="smoke", overrides=overrides)
    rows = [row for row in run.verdicts if row.claim in claims and row.headline]
    assert {row.claim for row in rows} == claims
    assert all(row.verdict == UNDECIDED and row.runs == 0 for row in rows)
    assert any(row.runs for row in run.verdicts if row.claim not in claims)
    assert drawn(study, run).pictures


def test_fewer_depths_are_still_the_papers_networks() -> None:
    assert is_papers(PairSettings(depths=(20, 32)))
    assert not is_papers(PairSettings(depths=(20, 26)))
    assert not is_papers(PairSettings(epochs=100))
