"""Which statements of littwin2017 are counted: no step of a proof, and no sentence twice (shared.md)."""

from __future__ import annotations

import pytest

from skiplab.reproduction.study import Study
from skiplab.studies import CATALOGUE

STUDIES = [study for study in CATALOGUE if study.id.startswith("littwin2017/")]
IN_PROOFS = range(36, 51)  # appendix B's equations


@pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.id)
def test_no_step_of_a_proof_is_counted(study: Study) -> None:
    places = [claim.source or "" for claim in study.claims if (claim.source or "").startswith("equation")]
    numbers = [int(word) for place in places for word in place.replace(",", " ").split() if word.isdigit()]
    assert not set(numbers) & set(IN_PROOFS)


def test_what_follows_from_a_theorem_or_a_definition_is_ours() -> None:
    ours = {claim.id for study in STUDIES for claim in study.claims if claim.source == "ours"}
    assert ours >= {
        "alpha-zero",
        "deeper-and-deeper",
        "dominant-gradients",
        "fewer-than-conventional",
        "later-epochs-lie-higher",
        "longer-paths-push",
        "norm-grows-steadily",
        "peak-formula",
        "scales-grow-steadily",
        "wide-networks",
    }
