"""What the table says of each theorem: samples over runs, beside what is printed, exact or corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skiplab.reproduction.claim import Evidence
from skiplab.studies.balduzzi2017.theorem_models import (
    GATED,
    HIGHWAY,
    NORMALISED,
    NORMALISED_TENTH,
    PLAIN_NORMALISED,
    RESCALED,
    RESIDUAL,
    Model,
    corrected,
    is_wide,
    printed,
    theory,
)

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.studies.balduzzi2017.theorems import Settings

ERRORS = 3.0  # standard errors allowed between Monte Carlo and exact theory, as the project asks
RATE = math.pi / (math.pi - 1)


def sample(frame: pd.DataFrame, law: str, model: Model, L: int, quantity: str) -> list[float]:
    """One number a run; the correlation is the ratio of means, one linearised number a run.

    r + (c_run − r v_run)/v has the ratio of means r as its mean and the delta method's standard error, which a mean
    of the runs' own ratios would not have.
    """
    if quantity == "correlation":
        both = [sample(frame, law, model, L, each) for each in ("covariance", "variance")]
        covariance, variance = (sum(each) / max(len(each), 1) for each in both)
        ratio = covariance / variance if variance else math.nan
        return [ratio + (c - ratio * v) / variance for c, v in zip(*both, strict=True)]
    chosen = (frame["law"] == law) & (frame["model"] == model.name) & (frame["L"] == L)
    found: list[float] = frame[chosen & (frame["quantity"] == quantity)].sort_values("run")["value"].tolist()
    return found


def depths_of(frame: pd.DataFrame, law: str, model: Model) -> list[int]:
    """The depths at which a model was measured."""
    return sorted(
        int(L) for L in frame.loc[(frame["law"] == law) & (frame["model"] == model.name), "L"].unique()
    )


def errors_apart(values: Sequence[float], expected: float) -> float:
    """How many standard errors the mean of the runs is from what is expected."""
    mean = sum(values) / len(values)
    spread = math.sqrt(sum((value - mean) ** 2 for value in values) / max(len(values) - 1, 1) / len(values))
    return abs(mean - expected) / spread if spread else (0.0 if mean == expected else math.inf)


def within(frame: pd.DataFrame, models: Sequence[Model]) -> Iterator[Evidence]:
    """Excess over 3 standard errors of variance and covariance under independent gates."""
    for model in models:
        for L in depths_of(frame, "gates", model):
            expected = dict(zip(("variance", "covariance"), theory(model, L), strict=True))
            apart = {
                name: errors_apart(sample(frame, "gates", model, L, name), value)
                for name, value in expected.items()
            }
            detail = ", ".join(
                f"{name} {expected[name]:.3g}, {each:.1f} errors off" for name, each in apart.items()
            )
            excess = [max(0.0, each - ERRORS) for each in apart.values()]
            yield Evidence(f"{model.label}, L = {L}", [excess], detail=detail)


def in_print(frame: pd.DataFrame, law: str, models: Sequence[Model]) -> Iterator[Evidence]:
    """Correlations against the printed ones; up to L = 2 they may be the same."""
    for model in models:
        for L in depths_of(frame, law, model):
            value, right = printed(model, L)[1], theory(model, L)
            detail = f"exact theory {right[1] / right[0]:.3g}"
            found = sample(frame, law, model, L, "correlation")
            yield Evidence(f"{model.label}, L = {L}", [found], paper_value=value, detail=detail)


def on_nets(
    frame: pd.DataFrame, settings: Settings, models: Sequence[Model], correct: bool
) -> Iterator[Evidence]:
    """Variance and correlation of real nets against the theorem, or against its correction for wide real nets."""
    for model in models:
        for L in depths_of(frame, "nets", model):
            variance, covariance = corrected(model, L, settings.batch) if correct else theory(model, L)
            narrow = correct and not is_wide(model, L, settings.width)
            detail = f"{settings.width} units are few for this depth" if narrow else ""
            for quantity, value in (("variance", variance), ("correlation", covariance / variance)):
                yield Evidence(
                    f"{model.label}, L = {L}, {quantity}",
                    [sample(frame, "nets", model, L, quantity)],
                    paper_value=value,
                    headline=not narrow or min(settings.depths) == L,
                    detail=detail,
                )


def concrete(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Section 3.3's own numbers for 100 layers."""
    for law in ("gates", "nets"):
        for model, value in ((NORMALISED, 0.1), (NORMALISED_TENTH, 0.7)):
            L = max(depths_of(frame, law, model))
            found = sample(frame, law, model, L, "correlation")
            shown = {"gates": "independent gates", "nets": "real nets"}[law]
            condition = f"β = {model.beta:g}, {shown}, L = {L}"
            yield Evidence(condition, [found], paper_value=value)


def limit(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for law, shown in (("gates", "independent gates"), ("nets", "real nets")):
        L = max(depths_of(frame, law, HIGHWAY))
        found = sample(frame, law, HIGHWAY, L, "correlation")
        yield Evidence(f"{shown}, L = {L}", [found], paper_value=math.exp(-0.5))


def highway_product(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    from skiplab.theory.gradient_shattering import printed_highway

    for L in depths_of(frame, "gates", HIGHWAY):
        found = sample(frame, "gates", HIGHWAY, L, "covariance")
        yield Evidence(f"L = {L}", [found], paper_value=printed_highway(L).covariance)


def means(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Mean gradients in units of the root of their second moment."""
    for model in GATED:
        L = min(depths_of(frame, "gates", model))
        unit = math.sqrt(theory(model, L)[0])
        found = [value / unit for value in sample(frame, "gates", model, L, "mean")]
        yield Evidence(f"{model.label}, L = {L}", [found])


def growth(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """The factor a layer by which gradients' variance grows, from each run's variance."""
    from skiplab.theory.gradient_shattering import plain_batch_norm

    for L in depths_of(frame, "nets", PLAIN_NORMALISED):
        # The first layer normalises inputs of variance 1, and so does not add to the growth.
        found = [value ** (1 / (L - 1)) for value in sample(frame, "nets", PLAIN_NORMALISED, L, "variance")]
        finite = plain_batch_norm(L, batch=settings.batch).variance ** (1 / (L - 1))
        yield Evidence(f"L = {L}, for batches of {settings.batch}", [found], paper_value=finite)
        yield Evidence(f"L = {L}, for large batches", [found], paper_value=RATE, headline=False)


def same(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """2^L times the α-rescaled nets' moments against the unscaled nets' with the same weights."""
    for L in depths_of(frame, "nets", RESCALED):
        for quantity in ("variance", "covariance"):
            pairs = zip(
                *(sample(frame, "nets", each, L, quantity) for each in (RESCALED, RESIDUAL)), strict=True
            )
            apart = [abs(scaled * 2**L / whole - 1) for scaled, whole in pairs]
            yield Evidence(f"L = {L}, {quantity}", [apart])


def lemma(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[Evidence]:
    chosen = frame[(frame["law"] == "paths") & frame["model"].isin(names)]
    for name, rows in chosen.groupby("model", sort=False):
        yield Evidence(str(name), [rows["value"].tolist()], detail=f"{len(rows)} random configurations")
