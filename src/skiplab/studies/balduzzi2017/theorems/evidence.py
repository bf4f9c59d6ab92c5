"""What the trials say of each theorem: samples over runs, beside what is exact or corrected."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from skiplab.reproduction import Evidence, Found, Results
from skiplab.reproduction.trial import Trial
from skiplab.studies.balduzzi2017.theorems.models import (
    GATED,
    HIGHWAY,
    NORMALISED,
    NORMALISED_TENTH,
    PLAIN,
    PLAIN_NORMALISED,
    RESCALED,
    RESIDUAL,
    Model,
    corrected,
    is_wide,
    theory,
)
from skiplab.studies.balduzzi2017.theorems.trials import gated, lemmas, outputs, real, weightless

ENOUGH = 0.02  # of the value: with a larger standard error hardly any mean is within 10 % beyond doubt
BETAS = (1.0, 0.3, 0.1)  # section 3.3: 1, and .1 to .3 after Szegedy et al.
FAR = 50_000  # layers, at which √L is reached to 1 % for β ≥ .1, which needs β²L ≫ 1
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


def relative_error(values: Sequence[float], expected: float) -> float:
    """The standard error of the mean over runs in units of what is expected; NaN if a run is not finite."""
    mean = sum(values) / len(values)
    if not math.isfinite(mean):
        return math.nan
    # hypot, since squares of moments such as 2^600 are past the floats.
    spread = math.hypot(*(value - mean for value in values))
    return spread / math.sqrt(max(len(values) - 1, 1) * len(values)) / abs(expected)


def under_gates(quantity: str, *models: Model) -> Found:
    """Evidence on a moment under independent gates against the theorem's.

    A depth at which the runs' mean is too uncertain to hold or be contradicted is a further row; the shallowest nets
    are always judged.
    """

    def found(results: Results) -> Iterator[Evidence]:
        for model in models:
            depths = depths_of(results, gated, model)
            for L in depths:
                expected = getattr(theory(model, L), quantity)
                values = sample(results, gated, model, L, quantity)
                error = relative_error(values, expected)
                # Not error > ENOUGH: runs that are not finite must not drop out of the verdict.
                blind = error > ENOUGH and depths[0] < L
                detail = f"no power: the standard error is {error:.2g} times the value" if blind else ""
                where = f"{model.label}, L = {L}"
                yield Evidence(where, [values], paper_value=expected, headline=not blind, detail=detail)

    return found


def shallow_of(results: Results) -> list[int]:
    """The depths, of three or more, between which feedforward nets with batch normalisation are compared."""
    return sorted(results.settings.shallow_depths)


def exponential(results: Results) -> Iterator[Evidence]:
    """The fall per layer of correlations with batch normalisation, relative to the fall between the shallowest nets.

    1 for an exponential. At one depth alone 2^−10 and the power law 10^−3 are the same number; a power law falls ever
    more slowly, L^−3 at .45 of the first rate between 5 and 10 layers if that is between 2 and 5.
    """
    steps = list(pairwise(shallow_of(results)))
    rates = [
        fall(results, real, PLAIN_NORMALISED, "correlation", near, far, float(far - near))
        for near, far in steps
    ]
    first = sum(rates[0]) / len(rates[0])
    for (near, far), later in zip(steps[1:], rates[1:], strict=True):
        ratio = sum(later) / len(later) / first if first else math.nan
        linear = [ratio + (one - ratio * other) / first for one, other in zip(later, rates[0], strict=True)]
        yield Evidence(
            f"L = {near} to {far} against {steps[0][0]} to {steps[0][1]}",
            [linear],
            paper_value=1.0,
            detail=f"−ln of correlations rises by {first:.3f} per layer, then by {ratio * first:.3f}; ln 2 is .693",
        )


def halving(results: Results) -> Iterator[Evidence]:
    """The factor per layer of real feedforward nets' correlations, with batch normalisation; ½ in theorem 1.

    The L-th root of the ratio of means, linearised as the ratio is.
    """
    for L in shallow_of(results):  # in deeper nets nothing is left to take a root of
        values = sample(results, real, PLAIN_NORMALISED, L, "correlation")
        ratio = sum(values) / len(values)
        root = ratio ** (1 / L) if ratio > 0 else math.nan
        linear = [root + root / L * (value / ratio - 1) for value in values]
        detail = f"correlation {ratio:.3g}, 2^−L {2.0**-L:.3g}"
        yield Evidence(f"L = {L}", [linear], paper_value=0.5, detail=detail)


def nothing_left(*models: Model) -> Found:
    """Evidence on correlations at 100 layers, in the first model under gates and in the second in real nets."""

    def found(results: Results) -> Iterator[Evidence]:
        for (trial, shown), model in zip(LAWS.items(), models, strict=True):
            L = hundred_of(results, trial, model)
            words = f"{shown} with BN" if model.normalised else shown
            yield Evidence(f"{words}, L = {L}", [sample(results, trial, model, L, "correlation")])

    return found


def factors(expected: Mapping[Model, float]) -> Found:
    """Evidence on the factor per layer by which real nets' variances grow, from each run's variance."""

    def found(results: Results) -> Iterator[Evidence]:
        for model, factor in expected.items():
            scaled = "" if model.alpha == 1 else "α = 1/√2, "
            for L in depths_of(results, real, model):
                values = sample(results, real, model, L, "variance")
                detail = f"variance {sum(values) / len(values):.3g}"
                roots = [value ** (1 / L) for value in values]
                yield Evidence(f"{scaled}L = {L}", [roots], paper_value=factor, detail=detail)

    return found


def decaying(results: Results) -> Iterator[Evidence]:
    """Correlations of real resnets at a depth against those at the next; nets of different depths are independent."""
    for shallow, deep in pairwise(depths_of(results, real, RESIDUAL)):
        both = [sample(results, real, RESIDUAL, L, "correlation") for L in (shallow, deep)]
        yield Evidence(f"L = {shallow} against {deep}", both)


def rate_per_layer(results: Results, trial: Trial, model: Model, L: int) -> list[float]:
    """−ln R/L of nets' correlations R, one number per run, linearised as the ratio of means is."""
    values = sample(results, trial, model, L, "correlation")
    ratio = sum(values) / len(values)
    rate = -math.log(ratio) / L if ratio > 0 else math.nan
    return [rate - (value / ratio - 1) / L for value in values]


def decays_on(results: Results) -> Iterator[Evidence]:
    """Rates of decay in deeper real resnets, and half of that in the shallowest; α does not change correlations.

    The widest nets decide, since nets that are narrow for their depth keep higher correlations. From one depth to the
    next, a further row, an exponential would have the first rate throughout.
    """
    settings = results.settings
    kinds = [(weightless, settings.wide_width)] if settings.wide_width else []
    for trial, width in (*kinds, (real, settings.width)):
        depths = depths_of(results, trial, RESIDUAL)
        shallow, *deeper = depths
        half = [rate / 2 for rate in rate_per_layer(results, trial, RESIDUAL, shallow)]
        first = f"in {shallow} layers {2 * sum(half) / len(half):.3g}"
        own = trial is weightless or not kinds
        for L in deeper:
            rates = rate_per_layer(results, trial, RESIDUAL, L)
            limit = -corrected(RESIDUAL, L, None).log2_correlation * math.log(2) / L
            detail = f"{sum(rates) / len(rates):.3g} per layer, {first}; in infinitely wide nets {limit:.3g}"
            if not is_wide(RESIDUAL, L, width):
                detail += f", and {width} units are few for this depth"
            where = f"{width} units, L = {L} against {shallow}"
            yield Evidence(where, [rates, half], headline=own, detail=detail)
        for near, far in pairwise(depths):
            rates = fall(results, trial, RESIDUAL, "correlation", near, far, float(far - near))
            where = f"{width} units, from L = {near} to {far}, against {shallow}"
            yield Evidence(where, [rates, half], headline=False)


def above_halving(results: Results) -> Iterator[Evidence]:
    """Correlations of real feedforward nets without batch normalisation, less 2^−L."""
    for L in depths_of(results, real, PLAIN):
        values = sample(results, real, PLAIN, L, "correlation")
        wide, twice = (corrected(PLAIN, each, None).log2_correlation for each in (L, 2 * L))
        detail = f"wide nets {2.0**wide:.3g}, which falls there as L^{twice - wide:.1f}"
        yield Evidence(f"L = {L}", [[value - 2.0**-L for value in values]], detail=detail)


def linear_growth(results: Results) -> Iterator[Evidence]:
    """How fast layers' output variance rises in a resnet's second half, relative to its first; 1 on a line."""
    for model in (NORMALISED, NORMALISED_TENTH):
        wide = results.rows(outputs, model=model.name).pivot(index="run", columns="L", values="value")
        last = int(wide.columns.max())
        half = last // 2
        first, second = wide[half] - wide[0], wide[2 * half] - wide[half]
        detail = f"from {wide[0].mean():.3g} to {wide[last].mean():.3g} in {last} layers"
        yield Evidence(f"β = {model.beta:g}", [(second / first).tolist()], paper_value=1.0, detail=detail)


def exponents(results: Results) -> Iterator[Evidence]:
    """The exponents of L in theorem 3's exact covariance and correlation at large L, from doubling it."""
    for beta in BETAS:
        model = replace(NORMALISED, beta=beta)
        near, far = (theory(model, L) for L in (FAR, 2 * FAR))
        fall = near.log2_correlation - far.log2_correlation
        rise = far.log2_variance - near.log2_variance - fall
        constant = far.correlation * beta * math.sqrt(2 * FAR)
        detail = f"R β√L is {constant:.4g} at L = {2 * FAR}"
        yield Evidence(f"β = {beta:g}", [[abs(rise - 0.5), abs(fall - 0.5)]], detail=detail)


def fall(
    results: Results, trial: Trial, model: Model, quantity: str, near: int, far: int, unit: float
) -> list[float]:
    """ln of nets' moment at a depth over that at a larger one, in units, one linearised number per run.

    Nets of different depths are independent; run i of both makes one number, whose scatter has both errors.
    """
    both = [sample(results, trial, model, L, quantity) for L in (near, far)]
    means = [sum(each) / len(each) for each in both]
    if min(means) <= 0:
        return [math.nan] * len(both[0])
    middle = math.log(means[0] / means[1])
    return [(middle + one / means[0] - other / means[1]) / unit for one, other in zip(*both, strict=True)]


def powers(results: Results) -> Iterator[Evidence]:
    """The exponents of L in real nets' variance and correlation with batch normalisation; 1 and −½ in theorem 3.

    Between the two largest depths, since the theorem is asymptotic; the other steps are further rows. So is the
    correlation itself with β = .1, for which 100 layers are too few for a power.
    """
    steps = list(pairwise(depths_of(results, real, NORMALISED)))
    for quantity, expected in (("variance", 1.0), ("correlation", -0.5)):
        for near, far in steps[::-1]:
            falls = fall(results, real, NORMALISED, quantity, near, far, math.log(far / near))
            ends = [getattr(theory(NORMALISED, L), quantity) for L in (near, far)]
            own = math.log(ends[1] / ends[0]) / math.log(far / near)
            yield Evidence(
                f"{quantity}, L = {near} to {far}",
                [[-value for value in falls]],
                paper_value=expected,
                headline=(near, far) == steps[-1],
                detail=f"in the theorem's model {own:.3f} between these depths",
            )
    deepest = max(depths_of(results, real, NORMALISED_TENTH))
    yield Evidence(
        f"β = .1, the correlation itself, L = {deepest}",
        [sample(results, real, NORMALISED_TENTH, deepest, "correlation")],
        paper_value=theory(NORMALISED_TENTH, deepest).correlation,
        headline=False,
        detail="compared with the theorem's model",
    )


def sublinear(results: Results) -> Iterator[Evidence]:
    """The power of 1/L by which real nets' correlations fall with batch normalisation, less ½, in every step."""
    for near, far in pairwise(depths_of(results, real, NORMALISED)):
        falls = fall(results, real, NORMALISED, "correlation", near, far, math.log(far / near))
        yield Evidence(f"L = {near} to {far}", [[value - 0.5 for value in falls]])


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


def hundred_of(results: Results, trial: Trial, model: Model) -> int:
    """100 layers, of which section 3.3 speaks, or the deepest nets of a run without that depth."""
    depths = depths_of(results, trial, model)
    return HUNDRED if HUNDRED in depths else max(depths)


def at_hundred(model: Model, value: float) -> Found:
    """Evidence on section 3.3's own number for 100 layers, in the model of which it speaks."""

    def found(results: Results) -> Iterator[Evidence]:
        L = hundred_of(results, gated, model)
        detail = f"exact theory {theory(model, L).correlation:.3g}"
        detail += "" if L == HUNDRED else f"; the paper speaks of {HUNDRED} layers, this row of {L}"
        numbers = sample(results, gated, model, L, "correlation")
        yield Evidence(f"β = {model.beta:g}, L = {L}", [numbers], value, detail=detail)

    return found


def level(results: Results) -> Iterator[Evidence]:
    """Correlations in the deepest highway nets against those in the shallowest real ones; real nets decide.

    Under independent gates the products of corollary 1 say it already.
    """
    near = min(depths_of(results, real, HIGHWAY))
    for trial, shown in LAWS.items():
        depths = depths_of(results, trial, HIGHWAY)
        shallow, deep = near if near in depths else min(depths), max(depths)
        both = [sample(results, trial, HIGHWAY, L, "correlation") for L in (deep, shallow)]
        ends = " to ".join(f"{sum(each) / len(each):.3f}" for each in both[::-1])
        detail = f"from {ends}; e^−½ is {math.exp(-0.5):.3f}"
        detail += " and in wide real nets it tends to .634" if trial is real else ""
        yield Evidence(f"{shown}, L = {deep} against {shallow}", both, headline=trial is real, detail=detail)


def means(results: Results) -> Iterator[Evidence]:
    """Mean gradients in units of the root of their second moment; theorem 1 is without skips, theorem 2 with."""
    for model in GATED:
        L = min(depths_of(results, gated, model))
        unit = math.sqrt(theory(model, L).variance)
        found = [value / unit for value in sample(results, gated, model, L, "mean")]
        yield Evidence(f"{model.label}, L = {L}", [found], headline=model in (PLAIN, RESIDUAL))


def growth(results: Results) -> Iterator[Evidence]:
    """The factor per layer by which gradients' variance grows, from each run's variance."""
    batch = results.settings.batch
    for L in sorted(results.settings.depths):
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
