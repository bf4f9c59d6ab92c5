"""What the table says of each theorem: samples over runs, beside what is printed, exact or corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skiplab.reproduction.claim import Evidence
from skiplab.studies.balduzzi2017.theorems.models import (
    GATED,
    HIGHWAY,
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

    from skiplab.studies.balduzzi2017.theorems.study import Settings

ERRORS = 3.0  # standard errors allowed between Monte Carlo and exact theory, as the project asks
RATE = math.pi / (math.pi - 1)
HUNDRED = 100  # layers, of which section 3.3 speaks
LAWS = {"gates": "independent gates", "nets": "real nets"}


def sample(frame: pd.DataFrame, law: str, model: Model, L: int, quantity: str) -> list[float]:
    """One number a run; the correlation is the ratio of means, one linearised number a run.

    r + (c_run − r v_run)/v has the ratio of means r as its mean and the delta method's standard error, which a mean
    of the runs' own ratios would not have.
    """
    if quantity == "correlation":
        both = [sample(frame, law, model, L, each) for each in ("covariance", "variance")]
        covariance, variance = (sum(each) / max(len(each), 1) for each in both)
        if not variance:
            return [math.nan] * len(both[0])
        ratio = covariance / variance
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
    """How many standard errors the mean of the runs is from what is expected; NaN if a run is not finite."""
    mean = sum(values) / len(values)
    if not math.isfinite(mean):
        return math.nan
    # hypot, since squares of moments such as 2^600 are past the floats.
    spread = math.hypot(*(value - mean for value in values)) / math.sqrt(
        max(len(values) - 1, 1) * len(values)
    )
    return abs(mean - expected) / spread if spread else (0.0 if mean == expected else math.inf)


def within(frame: pd.DataFrame, models: Sequence[Model]) -> Iterator[Evidence]:
    """Excess over 3 standard errors of variance and covariance under independent gates."""
    for model in models:
        for L in depths_of(frame, "gates", model):
            right = theory(model, L)
            expected = {"variance": right.variance, "covariance": right.covariance}
            found = {name: sample(frame, "gates", model, L, name) for name in expected}
            apart = {name: errors_apart(values, expected[name]) for name, values in found.items()}
            words = [f"{name} {expected[name]:.3g}, {each:.1f} errors off" for name, each in apart.items()]
            detail = ", ".join([*words, f"{len(found['variance'])} runs"])
            # Not max(0, …), which would turn NaN into 0 and so into a verdict that holds.
            excess = [0.0 if each <= ERRORS else each - ERRORS for each in apart.values()]
            yield Evidence(f"{model.label}, L = {L}", [excess], detail=detail)


def in_print(frame: pd.DataFrame, law: str, models: Sequence[Model]) -> Iterator[Evidence]:
    """Correlations against the printed ones; up to L = 2 they may be the same."""
    for model in models:
        for L in depths_of(frame, law, model):
            value = printed(model, L)[1]
            detail = f"exact theory {theory(model, L).correlation:.3g}"
            found = sample(frame, law, model, L, "correlation")
            yield Evidence(f"{model.label}, L = {L}", [found], paper_value=value, detail=detail)


def on_nets(
    frame: pd.DataFrame, settings: Settings, models: Sequence[Model], correct: bool
) -> Iterator[Evidence]:
    """Variance and correlation of real nets against the theorem, or against its correction for wide real nets."""
    for model in models:
        for L in depths_of(frame, "nets", model):
            expected = corrected(model, L, settings.batch) if correct else theory(model, L)
            narrow = correct and not is_wide(model, L, settings.width)
            detail = f"{settings.width} units are few for this depth" if narrow else ""
            for quantity, value in (("variance", expected.variance), ("correlation", expected.correlation)):
                yield Evidence(
                    f"{model.label}, L = {L}, {quantity}",
                    [sample(frame, "nets", model, L, quantity)],
                    paper_value=value,
                    headline=not narrow or min(settings.depths) == L,
                    detail=detail,
                )


def concrete(frame: pd.DataFrame, settings: Settings, model: Model, value: float) -> Iterator[Evidence]:
    """Section 3.3's own number for 100 layers; a run without that depth shows its deepest nets."""
    for law, shown in LAWS.items():
        depths = depths_of(frame, law, model)
        L = HUNDRED if HUNDRED in depths else max(depths)
        found = sample(frame, law, model, L, "correlation")
        right = theory(model, L) if law == "gates" else corrected(model, L, settings.batch)
        detail = f"{'exact' if law == 'gates' else 'corrected'} theory {right.correlation:.3g}"
        detail += "" if L == HUNDRED else f"; the paper speaks of {HUNDRED} layers, this row of {L}"
        yield Evidence(f"β = {model.beta:g}, {shown}, L = {L}", [found], paper_value=value, detail=detail)


def limit(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """The deepest highway nets against e^−½."""
    for law, shown in LAWS.items():
        L = max(depths_of(frame, law, HIGHWAY))
        right = theory(HIGHWAY, L) if law == "gates" else corrected(HIGHWAY, L, None)
        detail = f"at this depth {right.correlation:.3f}"
        detail += "" if law == "gates" else " in wide nets, which tend to .634"
        found = sample(frame, law, HIGHWAY, L, "correlation")
        yield Evidence(f"{shown}, L = {L}", [found], paper_value=math.exp(-0.5), detail=detail)


def highway_product(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """The covariance that the proof of corollary 1 prints."""
    from skiplab.theory.shattering.printed import printed_highway

    for L in depths_of(frame, "gates", HIGHWAY):
        found = sample(frame, "gates", HIGHWAY, L, "covariance")
        yield Evidence(f"L = {L}", [found], paper_value=printed_highway(L).covariance)


def means(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Mean gradients in units of the root of their second moment."""
    for model in GATED:
        L = min(depths_of(frame, "gates", model))
        unit = math.sqrt(theory(model, L).variance)
        found = [value / unit for value in sample(frame, "gates", model, L, "mean")]
        yield Evidence(f"{model.label}, L = {L}", [found])


def growth(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """The factor a layer by which gradients' variance grows, from each run's variance."""
    for L in depths_of(frame, "nets", PLAIN_NORMALISED):
        # The first layer normalises inputs of variance 1, and so does not add to the growth.
        found = [value ** (1 / (L - 1)) for value in sample(frame, "nets", PLAIN_NORMALISED, L, "variance")]
        finite = 2 ** (corrected(PLAIN_NORMALISED, L, settings.batch).log2_variance / (L - 1))
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
