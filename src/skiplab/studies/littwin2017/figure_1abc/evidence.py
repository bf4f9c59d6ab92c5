"""What listed peaks and weights outside bands say of theorems 1 and 2, lemma 4 and section 3."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.littwin2017.figure_1abc.trials import RHO, by_depth, every_length, random_peaks

FIXED = (1.0, 0.1)  # root mean squares C of weights that do not change with the width
OPEN = (0.1, 0.25, 0.5, 0.75, 0.9)  # probabilities ρ of an open gate
SHALLOW = (10, 100)  # depths at which a limit's approach is shown


def peak_rows(quantity: str, column: str) -> Found:
    """Evidence of peaks: how far beyond 1 from pβ/(1 + β) they are, or whether they are not at ⌊pβ/(1 + β)⌋ + 1."""

    def found(results: Results) -> Iterator[Evidence]:
        most = max(results.settings.depths)
        for beta in results.settings.betas:
            rows = results.rows(by_depth, beta=beta)
            at = rows[rows["quantity"] == "peak"].set_index("p")["value"]
            detail = f"at {at[100]:.0f} for p = 100" if 100 in at.index else ""
            checked = rows[rows["quantity"] == quantity]["value"].to_numpy()
            yield Evidence(f"β = {beta:g}, p up to {most:,}", [checked], detail=detail)
        yield Evidence("random β and p", [results.rows(random_peaks, case="any")[column].to_numpy()])

    return found


def ties(results: Results) -> Iterator[Evidence]:
    """Where pβ/(1 + β) is whole: peaks that are not exactly this length and the next."""
    rows = results.rows(random_peaks, case="whole")
    yield Evidence("random β and p", [rows["elsewhere"].to_numpy(), rows["peaks"].to_numpy() - 2])


def concentrated(results: Results) -> Iterator[Evidence]:
    """The weight below and above the band; the limit is judged at the largest depth only."""
    last, wide = max(results.settings.depths), max(results.settings.deltas)
    for beta in results.settings.betas:
        for delta in results.settings.deltas:
            rows = results.rows(by_depth, beta=beta, delta=delta, quantity=("below", "above"))
            for p, each in rows.groupby("p"):
                if p == last or delta == wide:
                    where = f"β = {beta:g}, ±{delta:g}p, p = {p:,}"
                    detail = f"{1 - each['value'].sum():.3g} within"
                    yield Evidence(where, [[each["value"].sum()]], headline=p == last, detail=detail)


def each_length(quantity: str) -> Found:
    """Evidence on every length of several depths."""

    def found(results: Results) -> Iterator[Evidence]:
        for p in results.settings.listed_depths:
            yield Evidence(f"p = {p}", [results.sample(every_length, by="length", p=p, quantity=quantity)])

    return found


def large_beta(results: Results) -> Iterator[Evidence]:
    """The peak's distance from p where β ≥ p − 1, and whether it is p where β < p − 1."""
    from skiplab.theory.path_ensembles.multipliers import peaks

    depths = (2, 10, 100, 1000)
    away = [float(p - peaks(p, Fraction(p - 1) * times)[-1]) for p in depths for times in (1, 2, 10)]
    yield Evidence("constant depth, β from p − 1 on", [away])
    deep = []
    for beta in (Fraction(1, 10), Fraction(1, 2), Fraction(2), Fraction(50)):
        least = math.floor(beta) + 2
        deep += [float(peaks(p, beta)[-1] == p) for p in (least, least + 1, least + 10, least + 10**5)]
    yield Evidence("constant β, p from β + 1 on", [deep])


def wide(results: Results) -> Iterator[Evidence]:
    """The distance of the peak from p in wider and wider networks of 100 layers with Λ = n."""
    from skiplab.theory.path_ensembles.multipliers import beta_of, multipliers

    p = 100

    def away(n: float, C: float) -> float:
        return float(p - 1 - multipliers(p, beta_of(RHO, n, C, n)).argmax())

    for C in FIXED:
        least = ((p - 1) / (RHO * C)) ** 2
        values = [away(times * least, C) for times in (1.01, 10, 100)]
        yield Evidence(f"C = {C:g}", [values], detail=f"from n = {math.ceil(least):,} on")
    widths = (10, 10**3, 10**6, 10**9)
    detail = "β = ρ at every width: the paper’s own initialisation, a page on"
    yield Evidence("C = 1/√n", [[away(n, n**-0.5) for n in widths]], headline=False, detail=detail)


def start(results: Results) -> Iterator[Evidence]:
    """Whether the peak is at half the depth or beyond where C = 1/√n and Λ = n (β = ρ); judged in the limit."""
    from skiplab.theory.path_ensembles.multipliers import beta_of, multipliers

    for rho, p, judged in _starts(results, max(results.settings.depths)):
        peak = 1 + int(multipliers(p, beta_of(rho, 64, 64**-0.5, 64)).argmax())
        yield Evidence(
            f"ρ = {rho:g}, p = {p:,}", [[float(peak >= p / 2)]], headline=judged, detail=f"at {peak:,}"
        )


def start_mass(results: Results) -> Iterator[Evidence]:
    """By how much the weight of lengths below half the depth falls short of one half, where β = ρ."""
    from skiplab.theory.path_ensembles.multipliers import mass_outside

    for rho, p, judged in _starts(results, max(SHALLOW), max(results.settings.depths)):
        below = 1 - mass_outside(p, rho, 1, math.ceil(p / 2) - 1)
        where = f"ρ = {rho:g}, p = {p:,}"
        yield Evidence(where, [[max(0.0, 0.5 - below)]], headline=judged, detail=f"they have {below:.3f}")


def _starts(results: Results, *judged: int) -> Iterator[tuple[float, int, bool]]:
    """Probabilities of open gates, depths, and whether the row is judged: at some depths, for ρ below 1."""
    for rho in (*OPEN, 1.0):
        for p in (*SHALLOW, max(results.settings.depths)):
            yield rho, p, p in judged and rho < 1


def legendre(results: Results) -> Iterator[Evidence]:
    """Eq 39's polynomial against its sum from r = 0, relative."""
    from math import comb

    from skiplab.theory.path_ensembles.multipliers import squared_binomials

    for beta in results.settings.betas:
        apart = []
        for p in (1, 2, 5, 10, 30, 60):
            total = sum(comb(p, r) ** 2 * beta ** (2 * r) for r in range(p + 1))
            apart.append(squared_binomials(p, beta) / total - 1)
        yield Evidence(f"β = {beta:g}", [apart])


def narrow(results: Results) -> Iterator[Evidence]:
    """The standard deviation of the path length relative to √(pα(1 − α)/2), less 1."""
    for beta in results.settings.betas:
        rows = results.rows(by_depth, beta=beta, quantity="deviation")
        rows = rows[rows["p"] >= 100]
        yield Evidence(f"β = {beta:g}", [rows["value"].to_numpy() - 1])
