"""What flows near a singularity show: stability, plateaus, and how good the reduced forms are."""

from __future__ import annotations

from collections.abc import Iterator

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2018.figure_2.trials import SIGNATURES, agreement, dependence, portrait, stability

STATED = (1e-4, 1e-3)  # curvature ratio |H|/K and distance |u| at which the reduced forms are judged
EXAMPLE, *OTHERS = SIGNATURES  # the caption's example has a stable segment between the eliminations


def stable(*signatures: str) -> Found:
    """Evidence of values of z at which the overlap is stable but should not be, or the other way round."""

    def found(results: Results) -> Iterator[Evidence]:
        for name in signatures:
            rows = results.rows(stability, condition=name)
            numbers = {str(key): part["value"] for key, part in rows.groupby("quantity")}
            inside, outside = (int(numbers[f"stable {where}"].sum()) for where in ("inside", "outside"))
            detail = f"stable at {inside} values of |z| < 1 and {outside} of |z| > 1"
            yield Evidence(name, [numbers["mismatches"].tolist()], detail=detail)

    return found


def plateaus(results: Results) -> Iterator[Evidence]:
    """How many powers of ten learning speeds up again, one number per start."""
    for name, beyond in (("near", "2 %"), ("far", "20 %")):
        sample = results.sample(portrait, by="run", condition=name, quantity="plateau")
        condition = f"two units, {beyond} outside the basin"
        yield Evidence(condition, [sample.tolist()], headline=name == "near")


def dependence_plateaus(results: Results) -> Iterator[Evidence]:
    """The same of our three units near a linear dependence, one number per toy."""
    toy, skip = (
        results.sample(dependence, by="run", condition=network, quantity="plateau")
        for network in ("plain", "residual")
    )
    yield Evidence("three units near dependence", [toy.tolist()], detail=f"with a skip: {skip.mean():.2g}")


def slow(results: Results) -> Iterator[Evidence]:
    """Relative errors of the form in which v and w follow, and (further rows) of that in which w is held."""
    yield from _errors(results, "relaxed", "u rate")
    yield from _errors(results, "relaxed", "z rate")
    for row in _errors(results, "relaxed, w held", "z rate"):
        yield Evidence(f"{row.condition}, relaxed, w held", row.samples, headline=False)


def frozen(results: Results) -> Iterator[Evidence]:
    """Relative errors of Wei's form."""
    yield from _errors(results, "frozen", "u rate")
    yield from _errors(results, "frozen", "z rate")


def _errors(results: Results, form: str, quantity: str) -> Iterator[Evidence]:
    """The form's relative error at the stated ratio and distance, for every z."""
    ratio, distance = STATED
    rows = results.rows(agreement, condition=form, quantity=quantity, ratio=ratio, u=distance)
    for z, part in rows.groupby("z"):
        yield Evidence(f"{quantity} at z = {z:g}", [part["value"].tolist()])


def blind(results: Results) -> Iterator[Evidence]:
    """The null direction's share of the gradient on the linear-dependence manifold, one number per toy."""
    sample = results.sample(dependence, by="run", condition="plain", quantity="null gradient")
    yield Evidence("three units", [sample.tolist()])
