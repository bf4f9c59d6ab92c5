from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.littwin2017.spin_glass import STUDY
from skiplab.studies.littwin2017.spin_glass.evidence import CIRCLE
from skiplab.studies.littwin2017.spin_glass.study import Settings
from skiplab.studies.littwin2017.spin_glass.trials import MODELS, minima, shares_of, theta_of
from skiplab.theory.spin_glasses.kac_rice import corrections, minima_on_a_circle
from skiplab.theory.spin_glasses.mixtures import derivatives

SETTINGS = Settings(runs=6, sizes=(10, 20, 40, 80))


def constructed(shift: float = 0.0, effective: float = 200.0) -> Results:
    """Runs whose rates are the expansion's, with θ moved by a shift, and small differences between runs."""
    rows = []
    for name in MODELS:
        first, second = map(float, derivatives(shares_of(name)))
        for seed in range(SETTINGS.runs):
            noise = (seed - 2.5) * 1e-5
            for size in SETTINGS.sizes:
                rate = theta_of(name) + shift + float(corrections(first, second, size)) + 0.7 / size + noise
                rows.append((seed, name, rate, effective, size))
            known = np.log(minima_on_a_circle(first, second)) / CIRCLE + noise
            rows.append((seed, name, float(known), effective, CIRCLE))
    table = pd.DataFrame(rows, columns=["seed", "model", "value", "effective", "size"])
    return Results(SETTINGS, [Part(minima.name, "draw_matrices", table)])


def test_rates_with_the_right_limit_hold_although_they_are_far_from_it(
    verdicts_of: Callable[..., dict[str, str]],
) -> None:
    assert verdicts_of(STUDY, constructed()) == {claim.id: "holds" for claim in STUDY.claims}


def test_another_limit_contradicts_equation_33(verdicts_of: Callable[..., dict[str, str]]) -> None:
    for shift in (0.004, -0.004):
        assert verdicts_of(STUDY, constructed(shift))["equation-33"] == "contradicted"


def test_few_matrices_and_another_circle_are_seen(
    verdicts_of: Callable[..., dict[str, str]], with_rows: Callable[..., Results]
) -> None:
    assert verdicts_of(STUDY, constructed(effective=50.0))["enough-matrices"] == "contradicted"
    results = constructed()
    frame = results.frame.copy()
    frame.loc[frame["size"] == CIRCLE, "value"] += 0.02
    assert verdicts_of(STUDY, with_rows(results, frame))["minima-on-a-circle"] == "contradicted"


def test_rates_at_their_limit_contradict_that_they_are_far_from_it(
    verdicts_of: Callable[..., dict[str, str]], with_rows: Callable[..., Results]
) -> None:
    results = constructed()
    frame = results.frame.copy()
    last = frame["size"] == max(SETTINGS.sizes)
    frame.loc[last, "value"] = frame[last]["model"].map(theta_of) + 1e-4 * frame[last]["seed"] / 6
    assert verdicts_of(STUDY, with_rows(results, frame))["far-from-the-limit"] == "contradicted"


def test_the_models_are_those_of_the_inventory() -> None:
    thetas = [theta_of(name) for name in MODELS]
    assert thetas == pytest.approx([0.0132, 0.0493, 0.0931, 0.2382], abs=5e-5)
    for name in MODELS:
        first, second = derivatives(shares_of(name))
        assert shares_of(name).sum() == 1
        assert second >= first  # where eq 33 holds for every k ≥ 0
    assert max(STUDY.settings["paper"].sizes) < 160


def test_smoke_counts_minima_and_is_drawn(smoke_run: Callable[[Study], StudyRun]) -> None:
    results = results_of(STUDY, smoke_run(STUDY))
    found = np.exp(CIRCLE * results.sample(minima, model="3", size=CIRCLE))
    assert found.mean() == pytest.approx(7**0.5, rel=0.1)
    assert len(STUDY.figure(results).axes) == 3
