"""What the trials say of each theorem: samples over runs, beside what is printed, exact or corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from skiplab.reproduction import Evidence, Found, Results
from skiplab.reproduction.trial import Trial
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
from skiplab.studies.balduzzi2017.theorems.trials import gated, lemmas, real

ERRORS = 3.0  # standard errors allowed between Monte Carlo and exact theory, as the project asks
RATE = math.pi / (math.pi - 1)
HUNDRED = 100  # layers, of which section 3.3 speaks
LAWS = {gated: "independent gates", real: "real nets"}


def sample(results: Results, trial: Trial, model: Model, L: int, quantity: str) -> list[float]:
    """One number per run; the correlation is the ratio of means, one linearised number per run.

    r + (c_run − r v_run)/v has the ratio of means r as its mean and the delta method's standard error, which a mean
    of the runs' own ratios would not have.
    """
    if quantity == "correlation":
        both = [sample(results, trial, model, L, each) for each in ("covariance", "variance")]
        covariance, variance = (sum(each) / max(len(each), 1) for each in both)
        if not variance:
            return [math.nan] * len(both[0])
        ratio = covariance / variance
        return [ratio + (c - ratio * v) / variance for c, v in zip(*both, strict=True)]
    found: list[float] = results.sample(trial, by="run", model=model.name, L=L, quantity=quantity).tolist()
    return found


def depths_of(results: Results, trial: Trial, model: Model) -> list[int]:
    """The depths at which a model was measured."""
    return sorted(int(L) for L in results.rows(trial, model=model.name)["L"].unique())


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


def within(*models: Model) -> Found:
    """Evidence of the excess over 3 standard errors of variance and covariance under independent gates."""

    def found(results: Results) -> Iterator[Evidence]:
        for model in models:
            for L in depths_of(results, gated, model):
                right = theory(model, L)
                expected = {"variance": right.variance, "covariance": right.covariance}
                apart = {
                    name: errors_apart(sample(results, gated, model, L, name), value)
                    for name, value in expected.items()
                }
                words = [f"{name} {expected[name]:.3g}, {off:.1f} errors off" for name, off in apart.items()]
                runs = len(sample(results, gated, model, L, "variance"))
                # Not max(0, …), which would turn NaN into 0 and so into a verdict that holds.
                excess = [0.0 if off <= ERRORS else off - ERRORS for off in apart.values()]
                detail = ", ".join([*words, f"{runs} runs"])
                yield Evidence(f"{model.label}, L = {L}", [excess], detail=detail)

    return found


def in_print(*models: Model) -> Found:
    """Evidence on correlations against the printed ones; up to L = 2 they may be the same."""

    def found(results: Results) -> Iterator[Evidence]:
        for model in models:
            for L in depths_of(results, gated, model):
                yield Evidence(
                    f"{model.label}, L = {L}",
                    [sample(results, gated, model, L, "correlation")],
                    paper_value=printed(model, L)[1],
                    detail=f"exact theory {theory(model, L).correlation:.3g}",
                )

    return found


def on_nets(*models: Model, correct: bool) -> Found:
    """Evidence on real nets' variance and correlation against the theorem, or its correction for wide real nets."""

    def found(results: Results) -> Iterator[Evidence]:
        settings = results.settings
        for model in models:
            for L in depths_of(results, real, model):
                expected = corrected(model, L, settings.batch) if correct else theory(model, L)
                narrow = correct and not is_wide(model, L, settings.width)
                for quantity in ("variance", "correlation"):
                    yield Evidence(
                        f"{model.label}, L = {L}, {quantity}",
                        [sample(results, real, model, L, quantity)],
                        paper_value=getattr(expected, quantity),
                        headline=not narrow or min(settings.depths) == L,
                        detail=f"{settings.width} units are few for this depth" if narrow else "",
                    )

    return found


def at_hundred(model: Model, value: float) -> Found:
    """Evidence on section 3.3's own number for 100 layers; a run without that depth shows its deepest nets."""

    def found(results: Results) -> Iterator[Evidence]:
        for trial, shown in LAWS.items():
            depths = depths_of(results, trial, model)
            L = HUNDRED if HUNDRED in depths else max(depths)
            exact = trial is gated
            right = theory(model, L) if exact else corrected(model, L, results.settings.batch)
            detail = f"{'exact' if exact else 'corrected'} theory {right.correlation:.3g}"
            detail += "" if L == HUNDRED else f"; the paper speaks of {HUNDRED} layers, this row of {L}"
            numbers = sample(results, trial, model, L, "correlation")
            yield Evidence(f"β = {model.beta:g}, {shown}, L = {L}", [numbers], value, detail=detail)

    return found


def limit(results: Results) -> Iterator[Evidence]:
    """The deepest highway nets against e^−½."""
    for trial, shown in LAWS.items():
        L = max(depths_of(results, trial, HIGHWAY))
        exact = trial is gated
        right = theory(HIGHWAY, L) if exact else corrected(HIGHWAY, L, None)
        detail = f"at this depth {right.correlation:.3f}"
        detail += "" if exact else " in wide nets, which tend to .634"
        found = sample(results, trial, HIGHWAY, L, "correlation")
        yield Evidence(f"{shown}, L = {L}", [found], paper_value=math.exp(-0.5), detail=detail)


def highway_product(results: Results) -> Iterator[Evidence]:
    """The covariance that the proof of corollary 1 prints."""
    from skiplab.theory.shattering.printed import printed_highway

    for L in depths_of(results, gated, HIGHWAY):
        found = sample(results, gated, HIGHWAY, L, "covariance")
        yield Evidence(f"L = {L}", [found], paper_value=printed_highway(L).covariance)


def means(results: Results) -> Iterator[Evidence]:
    """Mean gradients in units of the root of their second moment."""
    for model in GATED:
        L = min(depths_of(results, gated, model))
        unit = math.sqrt(theory(model, L).variance)
        found = [value / unit for value in sample(results, gated, model, L, "mean")]
        yield Evidence(f"{model.label}, L = {L}", [found])


def growth(results: Results) -> Iterator[Evidence]:
    """The factor per layer by which gradients' variance grows, from each run's variance."""
    batch = results.settings.batch
    for L in depths_of(results, real, PLAIN_NORMALISED):
        # The first layer normalises inputs of variance 1, and so does not add to the growth.
        found = [value ** (1 / (L - 1)) for value in sample(results, real, PLAIN_NORMALISED, L, "variance")]
        finite = 2 ** (corrected(PLAIN_NORMALISED, L, batch).log2_variance / (L - 1))
        yield Evidence(f"L = {L}, for batches of {batch}", [found], paper_value=finite)
        yield Evidence(f"L = {L}, for large batches", [found], paper_value=RATE, headline=False)


def rescaled_alike(results: Results) -> Iterator[Evidence]:
    """2^L times the α-rescaled nets' moments against the unscaled nets' with the same weights."""
    for L in depths_of(results, real, RESCALED):
        for quantity in ("variance", "covariance"):
            both = (sample(results, real, each, L, quantity) for each in (RESCALED, RESIDUAL))
            apart = [abs(scaled * 2**L / whole - 1) for scaled, whole in zip(*both, strict=True)]
            yield Evidence(f"L = {L}, {quantity}", [apart])


def lemma(*names: str) -> Found:
    """Evidence of how far both sides of a lemma are apart, one row per way of checking it."""

    def found(results: Results) -> Iterator[Evidence]:
        for name, rows in results.rows(lemmas, model=names).groupby("model", sort=False):
            yield Evidence(str(name), [rows["value"].tolist()], detail=f"{len(rows)} random configurations")

    return found
