"""What skip matrices of the τ family have of what note 4 says of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2017 import tau_matrices
from skiplab.studies.orhan2017.tau_matrices import matrices

if TYPE_CHECKING:
    import pandas as pd

WORKS = 32  # Cholesky's factor exists in float64 while τ(n − 1) ≤ 32, that is while exp(−32) ≈ 57 eps


def values(results: Results, tau: float, quantity: str) -> pd.Series[float]:
    """The numbers of a quantity at one τ, by draw."""
    return tau_matrices.values(results.rows(matrices), tau, quantity)


def built(results: Results) -> list[float]:
    """The τ at which some matrix could be built."""
    return [tau for tau in results.settings.taus if len(values(results, tau, "norm"))]


def within_bound(quantity: str) -> Found:
    """Evidence of how much a quantity exceeds n·eps·cond(T)², relative to it; 0 if it does not."""

    def found(results: Results) -> Iterator[Evidence]:
        for tau in built(results):
            each, bound = values(results, tau, quantity), values(results, tau, "bound")
            detail = f"{each.max():.2g}, bound {bound.min():.2g}"
            if quantity == "deviation":
                detail += f", {(each / values(results, tau, 'eps cond')).max():.2g} eps·cond(T)"
            # A bound of 1 or more allows anything.
            headline = bool(bound.max() < 1)
            yield Evidence(f"τ = {tau:g}", [_excess(each, bound)], headline=headline, detail=detail)

    return found


def real(results: Results) -> Iterator[Evidence]:
    """How much imaginary parts exceed n·eps·cond(T), relative to it."""
    for tau in built(results):
        each = values(results, tau, "imaginary")
        bound = results.settings.width * values(results, tau, "eps cond")
        yield Evidence(f"τ = {tau:g}", [_excess(each, bound)], detail=f"{each.max():.2g}")


def _excess(found: pd.Series[float], bound: pd.Series[float]) -> list[float]:
    return (found / bound - 1).clip(lower=0).tolist()


def diagonalised(results: Results) -> Iterator[Evidence]:
    """How far every O drawn is from U L Uᴴ, and (a further row) from U L Uᵀ without conjugation."""
    for quantity, words, headline in (("U L Uᴴ", "conjugated", True), ("U L Uᵀ", "as our text reads", False)):
        each = results.rows(matrices, quantity=quantity)["value"]
        detail = f"{each.min():.2g} to {each.max():.2g}"
        yield Evidence(f"every O drawn, {words}", [each.tolist()], headline=headline, detail=detail)


def by_tau(quantity: str) -> Found:
    """Evidence of a quantity, a row for each τ."""

    def found(results: Results) -> Iterator[Evidence]:
        for tau in built(results):
            yield Evidence(f"τ = {tau:g}", [values(results, tau, quantity).tolist()])

    return found


def as_prescribed(quantity: str) -> Found:
    """Evidence of the largest |λ_i − exp(−τ(i − 1))| of every draw."""

    def found(results: Results) -> Iterator[Evidence]:
        for tau in built(results):
            rows = results.rows(matrices, tau=tau, quantity=(quantity, "prescribed"))
            wide = rows.pivot(index=["draw", "x"], columns="quantity", values="value")
            apart = (wide[quantity] - wide["prescribed"]).abs().groupby("draw").max()
            first = wide[quantity].groupby("draw").max()
            detail = f"the largest eigenvalue is {first.mean():.3g}, prescribed 1"
            # Beyond, Σ is rounding noise and what it deviates from says nothing.
            headline = bool(values(results, tau, "bound").max() < 1)
            yield Evidence(f"τ = {tau:g}", [apart.tolist()], headline=headline, detail=detail)

    return found


def rising(*quantities: str) -> Found:
    """Evidence with a sample for each τ, from the smallest to the largest."""

    def found(results: Results) -> Iterator[Evidence]:
        for quantity in quantities:
            samples = {tau: values(results, tau, quantity).tolist() for tau in built(results)}
            means = [sum(each) / len(each) for each in samples.values()]
            fewer = [
                f"{len(each)} of {results.settings.runs} draws at τ = {tau:g}, where the others have no factor"
                for tau, each in samples.items()
                if len(each) < results.settings.runs
            ]
            detail = "; ".join([f"from {means[0]:.3g} to {means[-1]:.3g}", *fewer])
            yield Evidence(quantity, list(samples.values()), detail=detail)

    return found


def exists(results: Results) -> Iterator[Evidence]:
    """Draws without a Cholesky factor; the headline is where there should be none."""
    settings = results.settings
    for tau in settings.taus:
        failed = values(results, tau, "failed")
        detail = f"{int(failed.sum())} of {len(failed)} draws have no factor"
        inside = tau * (settings.width - 1) <= WORKS
        yield Evidence(f"τ = {tau:g}", [failed.tolist()], headline=inside, detail=detail)
