from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.yu2019.figure_13.study import BEST_EXPONENT, STUDY, Settings, exceeding
from skiplab.theory.dominant_flow import gaussian_ratio

SETTINGS = Settings(runs=6, ratios=(0.1, 1.0, 10.0))


@pytest.fixture(scope="module")
def right() -> Results:
    rows = [
        (ratio, seed, float(gaussian_ratio.exceedance(ratio)) + (seed - 2.5) * 1e-4)
        for ratio in SETTINGS.ratios
        for seed in range(SETTINGS.runs)
    ]
    table = pd.DataFrame(rows, columns=["ratio", "seed", "value"])
    return Results(SETTINGS, [Part(exceeding.name, "draw_pairs", table)])


def verdicts(results: Results) -> Mapping[str, str]:
    return {each.claim: each.verdict for each in judgements(judge(STUDY, results, "quick"))}


def test_every_claim_holds_where_it_is_right(right: Results) -> None:
    assert verdicts(right) == {claim.id: "holds" for claim in STUDY.claims}


def test_shares_of_pairs_contradict_an_integral_that_is_no_probability(
    right: Results, with_rows: Callable[..., Results]
) -> None:
    frame = right.frame.copy()
    frame.loc[frame["ratio"] == 10, "value"] -= 0.01
    assert verdicts(with_rows(right, frame))["integral"] == "contradicted"


def test_a_normaliser_as_our_text_has_it_contradicts_all_but_a_half(
    right: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """√(2πσ) below g_σ is no density but at σ = 1."""
    proper = gaussian_ratio.integrated_exceedance

    def as_printed(ratio: float) -> float:
        return (proper(ratio) + 1) * ratio**0.5 - 1

    monkeypatch.setattr(gaussian_ratio, "integrated_exceedance", as_printed)
    found = verdicts(right)
    assert found["integral"] == found["arctangent"] == "contradicted"
    assert found["a-half-at-one"] == "holds"
    monkeypatch.setattr(gaussian_ratio, "integrated_exceedance", lambda ratio: proper(ratio) + 1e-6)
    assert verdicts(right)["a-half-at-one"] == "contradicted"


def test_another_exponent_would_be_seen(right: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaussian_ratio, "EXPONENT", 1.1)
    assert verdicts(right)["approximation"] == "contradicted"


def test_numbers_of_the_words() -> None:
    errors = {c: gaussian_ratio.largest_error(c)[0] for c in np.round(np.arange(1.2, 1.23, 0.001), 3)}
    assert min(errors, key=lambda c: errors[c]) == BEST_EXPONENT
    assert errors[BEST_EXPONENT] == pytest.approx(0.0063, abs=5e-5)
    assert gaussian_ratio.largest_error()[1] == pytest.approx(2.07, abs=0.005)
    assert 1 - float(gaussian_ratio.exceedance(100)) == pytest.approx(0.0064, abs=5e-5)
    assert 1 - float(gaussian_ratio.approximate_exceedance(100)) == pytest.approx(0.0040, abs=5e-5)


def test_smoke_counts_pairs_and_is_drawn(carried_out: Callable[..., Results]) -> None:
    results = carried_out(STUDY, STUDY.settings["smoke"])
    assert results.sample(exceeding, ratio=1.0).mean() == pytest.approx(0.5, abs=0.12)
    # Of pairs drawn anew for each ratio, more exceed where the ratio is larger.
    assert results.sample(exceeding, ratio=3.0).mean() > results.sample(exceeding, ratio=0.3).mean() + 0.4
    assert len(STUDY.figure(results).axes) == 2
