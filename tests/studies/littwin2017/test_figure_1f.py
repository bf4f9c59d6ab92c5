from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.littwin2017.figure_1f import STUDY, evidence
from skiplab.studies.littwin2017.figure_1f.trials import _climbed, random_mixtures
from skiplab.theory.spin_glasses import mixtures


@pytest.fixture
def results(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_every_claim_holds(verdicts_of: Callable[..., dict[str, str]], results: Results) -> None:
    assert verdicts_of(STUDY, results) == {claim.id: "holds" for claim in STUDY.claims}


@pytest.mark.parametrize(
    ("quantity", "value", "claim"),
    [
        ("above", 1e-3, "theorem-5"),
        ("summit", 0.1, "theorem-5"),
        ("variance", 1e-6, "variance"),
        ("equation 48", 1e-6, "equation-48"),
        ("ratio", 1e-3, "mended-proof"),
    ],
)
def test_one_mixture_that_is_off_contradicts(
    contradicted_by: Callable[..., set[str]], quantity: str, value: float, claim: str
) -> None:
    assert contradicted_by(STUDY, "value", value, quantity=quantity) == {claim}


def test_another_theta_would_be_seen(
    verdicts_of: Callable[..., dict[str, str]], results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With v″ + v′ for v″ − v′ in eq 33 θ falls by 1 − a, and no value is what it was."""

    def wrong(ratio: np.ndarray) -> np.ndarray:
        return np.log(ratio) / 2 - 1 + 0 * ratio

    monkeypatch.setattr(mixtures, "complexity_at", wrong)
    found = verdicts_of(STUDY, results)
    assert found["values"] == found["mended-proof"] == "contradicted"


def test_a_theta_that_falls_contradicts(
    verdicts_of: Callable[..., dict[str, str]], results: Results, monkeypatch: pytest.MonkeyPatch
) -> None:
    proper = mixtures.complexity_at
    monkeypatch.setattr(mixtures, "complexity_at", lambda ratio: -proper(ratio))
    found = verdicts_of(STUDY, results)
    assert found["rises-with-beta"] == "contradicted"


def test_the_climb_ends_in_the_pure_model_from_any_mixture_of_all() -> None:
    for start in (np.full(9, 1 / 9), np.array([0.99, *[0.01 / 8] * 8])):
        assert _climbed(start)[-1] == pytest.approx(1, abs=1e-9)


def test_sparse_and_even_mixtures_are_drawn_and_stay_below(results: Results) -> None:
    nearest = results.sample(random_mixtures, quantity="nearest", p=10)
    assert (nearest > 0).all()
    assert (nearest < 0.2).all()


def test_the_headline_is_a_hundred_layers_and_the_words_numbers_are_right(results: Results) -> None:
    rows = list(evidence.steps_down(results))
    assert [each.headline for each in rows] == [True, False]
    (hundred, *_) = evidence.below_mean_depth(results)
    assert hundred.detail.startswith("0.306 and 0.291")
    assert len(STUDY.figure(results).axes) == 2
