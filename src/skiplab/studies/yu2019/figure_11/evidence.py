"""What the simulated shares say of figure 11's formulas and of plain against residual networks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.yu2019.figure_11.trials import PANELS, case_of, shares

if TYPE_CHECKING:
    import numpy as np

LARGEST_SIGMA_A = (
    0.1  # a rectifier's usual initialisation has .06 to .12, the paper's for residual networks .007
)
BIG_ENOUGH = 0.7  # p from which residual networks should have more dominant flows
NOT_OBVIOUS = 0.6  # p below which the paper does not see them
FALLING = ("epsilon", "n", "sigma_a")
RISING = ("layer", "p")


def sample(results: Results, kind: str, parameter: str, at: float, *, open_path: bool = False) -> np.ndarray:
    """The simulated shares at one point, by seed."""
    return results.sample(shares, kind=kind, parameter=parameter, at=float(at), open_path=open_path)


def points(results: Results, *parameters: str) -> Iterator[tuple[str, float, str]]:
    """Parameter, value and name of every point of some panels."""
    for parameter in parameters:
        letter, sign = PANELS[parameter]
        for at in getattr(results.settings, parameter):
            yield parameter, at, f"({letter}) {sign} = {at:g}"


def coincide(*parameters: str) -> Found:
    """Evidence of residual networks, simulated minus eq 11, along some panels; large σ_A are further rows."""

    def found(results: Results) -> Iterator[Evidence]:
        for parameter, at, where in points(results, *parameters):
            simulated = sample(results, "residual", parameter, at)
            by_form = {form: formula(parameter, at, form) for form in ("squares", "printed", "powers")}
            detail = (
                f"simulated {simulated.mean():.4f}, eq 11 {by_form['squares']:.4f}, "
                f"closing formula {by_form['printed']:.4f}, with Σp^k {by_form['powers']:.4f}"
            )
            apart = simulated - by_form["squares"]
            yield Evidence(where, [apart], headline=_small_weights(parameter, at), detail=detail)

    return found


def _small_weights(parameter: str, at: float) -> bool:
    return parameter != "sigma_a" or at <= LARGEST_SIGMA_A


def formula(parameter: str, at: float, form: str = "squares") -> float:
    """The approximate E[σ] at one point."""
    from skiplab.theory.dominant_flow.trivial_case import expected_share

    return expected_share(case_of(parameter, at), form)


def ordered(*parameters: str, falling: bool = False) -> Found:
    """Evidence with a sample of residual networks per value, in the order in which shares should rise."""

    def found(results: Results) -> Iterator[Evidence]:
        for parameter in parameters:
            letter, sign = PANELS[parameter]
            values = sorted(getattr(results.settings, parameter), reverse=falling)
            samples = [sample(results, "residual", parameter, at) for at in values]
            ends = f"{samples[0].mean():.4f} to {samples[-1].mean():.4f}"
            where = f"({letter}) {sign} from {values[0]:g} to {values[-1]:g}"
            yield Evidence(where, samples, detail=ends, paired=True)

    return found


def formula_steps(results: Results) -> Iterator[Evidence]:
    """Steps between neighbouring values at which the formulas go the wrong way, by how much."""
    names = {"printed": "closing formula", "squares": "eq 11", "powers": "with Σp^k"}
    for form, name in names.items():
        wrong = []
        for parameter in (*FALLING, *RISING):
            values = sorted(getattr(results.settings, parameter), reverse=parameter in FALLING)
            steps = pairwise(formula(parameter, at, form) for at in values)
            wrong += [max(earlier - later, 0.0) for earlier, later in steps]
        yield Evidence(name, [wrong], headline=form != "powers", detail=f"{len(wrong)} steps")


def without_effect(*cases: tuple[str, str]) -> Found:
    """Evidence of how shares differ from those at a panel's first value, for the same random numbers."""

    def found(results: Results) -> Iterator[Evidence]:
        for kind, parameter in cases:
            first, *others = getattr(results.settings, parameter)
            base = sample(results, kind, parameter, first)
            apart = [sample(results, kind, parameter, at) - base for at in others]
            where = f"{kind}, {PANELS[parameter][1]} from {first:g} to {others[-1]:g}"
            yield Evidence(where, apart, detail=f"{base.mean():.4f} everywhere" if not _any(apart) else "")

    return found


def _any(differences: Sequence[np.ndarray]) -> bool:
    return any(each.any() for each in differences)


def residual_above_plain(results: Results) -> Iterator[Evidence]:
    """Both kinds at every point that has both; further rows are outside "p big enough, σ_A small enough"."""
    for parameter, at, where in points(results, "n", "layer", "sigma_a", "sigma_v", "p"):
        both = _both(results, parameter, at)
        headline = at >= BIG_ENOUGH if parameter == "p" else _small_weights(parameter, at)
        yield Evidence(where, both, headline=headline, detail=_means(both), paired=True)


def not_obvious(results: Results) -> Iterator[Evidence]:
    """Plain and residual networks where p is below .6."""
    for at in results.settings.p:
        if 0 < at < NOT_OBVIOUS:
            both = _both(results, "p", at)
            yield Evidence(f"p = {at:g}", both[::-1], detail=_means(both), paired=True)


def _both(results: Results, parameter: str, at: float) -> list[np.ndarray]:
    return [sample(results, kind, parameter, at) for kind in ("residual", "plain")]


def _means(both: Sequence[np.ndarray]) -> str:
    return f"residual {both[0].mean():.4f}, plain {both[1].mean():.4f}"


def plain_by_p(results: Results) -> Iterator[Evidence]:
    """Plain networks with all gates open against those with few; the headline has p = .3, or the nearest."""
    few = min(results.settings.p, key=lambda p: abs(p - 0.3))
    for at in results.settings.p:
        if at < 1:
            both = [sample(results, "plain", "p", each) for each in (1.0, at)]
            detail = f"{both[0].mean():.4f} and {both[1].mean():.4f}"
            yield Evidence(f"p = 1 against {at:g}", both, headline=at == few, detail=detail, paired=True)


def not_normal(results: Results) -> Iterator[Evidence]:
    """What normal entries would give, φ(1/√(n − 1)), minus the simulated share of plain networks with open gates."""
    n = case_of("p", 1.0).n
    normal = 2 / math.pi * math.atan(1 / math.sqrt(n - 1))
    found = sample(results, "plain", "p", 1.0)
    yield Evidence(f"n = {n}, p = 1", [normal - found], detail=f"normal {normal:.4f}, {found.mean():.4f}")


def at_p(*, least: bool) -> Found:
    """Evidence of both kinds' shares where no gate is open, p = 0, or at the smallest p above 0."""

    def found(results: Results) -> Iterator[Evidence]:
        at = min(p for p in results.settings.p if p > 0) if least else 0.0
        for kind in ("residual", "plain"):
            yield Evidence(f"{kind}, p = {at:g}", [sample(results, kind, "p", at)])

    return found


def all_open(results: Results) -> Iterator[Evidence]:
    """Simulated minus the formula where all gates are open and all three forms are one."""
    found, formed = sample(results, "residual", "p", 1.0), formula("p", 1.0)
    yield Evidence("p = 1", [found - formed], detail=f"simulated {found.mean():.4f}, formula {formed:.4f}")


def mixture_is_nearer(results: Results) -> Iterator[Evidence]:
    """How far eq 11 and Σp^k are from the simulation given an open path, which is what both speak of.

    With the exact φ, so that eq 15 does not blur it. Further rows are of all paths, and where εA is
    too small to tell the two apart or not small at all.
    """
    for at in results.settings.sigma_a:
        for open_path, words in ((True, "open paths"), (False, "all paths")):
            if at >= LARGEST_SIGMA_A:
                found = sample(results, "residual", "sigma_a", at, open_path=open_path)
                forms = [_given(at, form, open_path) for form in ("squares", "powers")]
                detail = f"simulated {found.mean():.4f}, eq 11 {forms[0]:.4f}, with Σp^k {forms[1]:.4f}"
                away = [abs(found - form) for form in forms]
                headline = open_path and LARGEST_SIGMA_A < at < 1
                yield Evidence(f"{words}, σ_A = {at:g}", away, headline=headline, detail=detail, paired=True)


def _given(sigma_a: float, form: str, open_path: bool) -> float:
    from skiplab.theory.dominant_flow.trivial_case import expected_share

    case = case_of("sigma_a", sigma_a)
    return expected_share(case, form, exact_phi=True) / (case.p**case.steps if open_path else 1)


def shut_paths(results: Results) -> Iterator[Evidence]:
    """Simulated minus the corrected formula at small p, where shut paths, which it leaves out, count."""
    for at in results.settings.p:
        if at > 0:
            found, formed = sample(results, "residual", "p", at), formula("p", at, "powers")
            detail = f"simulated {found.mean():.4f}, formula {formed:.4f}"
            yield Evidence(f"p = {at:g}", [found - formed], headline=0.3 <= at <= NOT_OBVIOUS, detail=detail)
