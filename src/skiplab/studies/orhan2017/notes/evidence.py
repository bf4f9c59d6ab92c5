"""Evidence for the claims of notes 1–3: what Hessians and Gauss–Newton matrices have at their singular points."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Found, Results
from skiplab.studies.orhan2017.notes.derivatives import derivatives
from skiplab.studies.orhan2017.notes.trials import (
    ACTIVATIONS,
    NETWORKS,
    PLAIN_POINTS,
    RESIDUAL_POINTS,
    SHAPES,
    multilayer,
    reduced,
    three_layers,
)

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and a few hundred terms are added
OVERLAPS = ("a overlaps", "b overlaps", "both overlap")
A_BLOCK, B_BLOCK = "a-block", "b-block"


TRIALS = {1: multilayer, 2: three_layers, 3: reduced}  # by note


def values(results: Results, note: int, quantity: str, **where: Any) -> pd.Series[float]:
    """The numbers of one quantity by draw, chosen further by network, case, point or x."""
    rows = results.rows(TRIALS[note], quantity=quantity, **where)
    return rows.set_index("draw")["value"]


def _range(numbers: pd.Series[float]) -> str:
    low, high = numbers.min(), numbers.max()
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


def note_1(quantity: str, point: str = "overlap") -> Found:
    """Evidence of a quantity of note 1's networks, which is to be 0."""

    def found(results: Results) -> Iterator[Evidence]:
        for case in ACTIVATIONS:
            each = values(results, 1, quantity, case=case, point=point)
            yield Evidence(case, [each.tolist()], detail=f"{_range(each)} over {len(each)} networks")

    return found


def note_1_zeros_gained(results: Results) -> Iterator[Evidence]:
    """Zeros that H gains, less max(0, outgoing − incoming weights)."""
    for case, (_, incoming, outgoing) in ACTIVATIONS.items():
        found, predicted = values(results, 1, "gained", case=case), max(0, outgoing - incoming)
        yield Evidence(case, [(found - predicted).tolist()], detail=f"{_range(found)}, {predicted} predicted")


def note_1_block_gained(results: Results) -> Iterator[Evidence]:
    """Zeros that the Gauss–Newton block gains, less the outgoing weights."""
    for case, (_, _, outgoing) in ACTIVATIONS.items():
        found = values(results, 1, "block gained", case=case)
        yield Evidence(case, [(found - outgoing).tolist()], detail=f"{_range(found)}, {outgoing} predicted")


def note_2(quantity: str, *points: str) -> Found:
    """Evidence of a quantity of note 2's plain networks at some points, which is to be 0."""

    def found(results: Results) -> Iterator[Evidence]:
        for case in SHAPES:
            samples = {
                point: values(results, 2, quantity, network="plain", case=case, point=point)
                for point in points
            }
            detail = ", ".join(f"{point}: {_range(each)}" for point, each in samples.items())
            together = [float(value) for each in samples.values() for value in each]
            yield Evidence(f"linear, {case}", [together], detail=detail)

    return found


def both(first: Found, second: Found) -> Found:
    """The rows of two pieces of evidence, one after the other."""

    def found(results: Results) -> Iterator[Evidence]:
        yield from first(results)
        yield from second(results)

    return found


def printed_derivatives(quantity: str) -> Found:
    """Evidence of a quantity of the networks whose first derivatives are compared, which is to be 0."""

    def found(results: Results) -> Iterator[Evidence]:
        rows = results.rows(derivatives, quantity=quantity)
        for case, each in rows.groupby("case", sort=False)["value"]:
            yield Evidence(str(case), [each.tolist()], detail=f"{_range(each)} over {len(each)} networks")

    return found


def notes_1_and_2(quantity: str) -> Found:
    """Evidence of a quantity at the overlaps of both notes' plain networks, and where a unit's weights vanish."""
    return both(note_1(quantity), note_2(quantity, *PLAIN_POINTS[1:]))


def pushes(results: Results) -> Iterator[Evidence]:
    """Networks in which ‖Hd‖ is 0 for some direction."""
    for row in notes_1_and_2("push")(results):
        unmoved = [float(value <= ROUNDING) for value in row.samples[0]]
        yield Evidence(row.condition, [unmoved], detail=f"the smallest ‖Hd‖/‖H‖ is {min(row.samples[0]):.2g}")


# The largest ‖Hd‖ at an optimum.
null_at_an_optimum = both(
    note_1("largest push", "overlap, optimum"), note_2("largest push", "b overlaps, optimum")
)


def eq_30(results: Results) -> Iterator[Evidence]:
    """How far H's block of a is from the printed second derivatives."""
    for network in NETWORKS[:2]:
        yield Evidence(network, [values(results, 2, "eq 30", network=network).tolist()])


def residual_zeros(results: Results) -> Iterator[Evidence]:
    """Zeros of the residual network's H at overlaps; further rows at an optimum."""
    at_an_optimum = ("b overlaps, optimum",)
    for case in SHAPES:
        for where, points in (("", OVERLAPS), (", optimum", at_an_optimum)):
            ours, plain = (
                [
                    v
                    for point in points
                    for v in values(results, 2, "zeros", network=name, case=case, point=point)
                ]
                for name in ("residual", "plain")
            )
            detail = f"up to {max(ours):g} zeros, in the plain network {max(plain):g}"
            yield Evidence(f"{case}{where}", [ours], headline=points is OVERLAPS, detail=detail)


def generic_zeros(results: Results) -> Iterator[Evidence]:
    """Zeros of Gauss–Newton at generic points, less those that the symmetry B A = (B G⁻¹)(G A) makes."""
    for case, (hidden, modes) in SHAPES.items():
        predicted = hidden**2 if hidden <= modes else 2 * hidden * modes - modes**2
        for network in NETWORKS[:2]:
            found = values(results, 2, "gauss-newton", network=network, case=case, point="generic")
            detail = f"{_range(found)}, {predicted} predicted"
            yield Evidence(f"{case}, {network}", [(found - predicted).tolist()], detail=detail)


def _gained(results: Results, quantity: str, network: str, case: str, point: str) -> pd.Series[float]:
    """Zeros at the point less those of the same networks at a generic one."""
    at, generic = (
        values(results, 2, quantity, network=network, case=case, point=place) for place in (point, "generic")
    )
    return at - generic


def gauss_newton_gains(results: Results) -> Iterator[Evidence]:
    """Zeros that Gauss–Newton gains at overlaps, less the prediction."""
    for case, (n, m) in SHAPES.items():
        for network in NETWORKS[:2]:
            apart, found = [], []
            for point in OVERLAPS:
                predicted = 2 * (m - n) + 1 if point == "both overlap" else m - n
                gained = _gained(results, "gauss-newton", network, case, point)
                apart += (gained - (predicted if network == "plain" and n <= m else 0)).tolist()
                found.append(f"{point}: {_range(gained)}")
            yield Evidence(f"{case}, {network}", [apart], detail=", ".join(found))


def closed_form_zeros(results: Results) -> Iterator[Evidence]:
    """Zeros less the closed forms with the ranks found, at all points."""
    for quantity, where in (("gauss-newton", "whole matrix"), (A_BLOCK, A_BLOCK), (B_BLOCK, B_BLOCK)):
        found, predicted = (
            values(results, 2, name).to_numpy() for name in (quantity, f"{quantity} predicted")
        )
        detail = f"{len(found)} networks of all shapes at all points"
        yield Evidence(where, [(found - predicted).tolist()], detail=detail)


def block_gains(results: Results) -> Iterator[Evidence]:
    """Zeros that the block of a gains where b overlaps, and vice versa, less the prediction."""
    for case, (n, m) in SHAPES.items():
        for network in NETWORKS[:2]:
            predicted = m if network == "plain" and n <= m else 0
            blocks = [
                _gained(results, block, network, case, point)
                for point, block in (("b overlaps", A_BLOCK), ("a overlaps", B_BLOCK))
            ]
            detail = f"{_range(blocks[0])} and {_range(blocks[1])}, {predicted} predicted"
            apart = [float(v - predicted) for block in blocks for v in block]
            yield Evidence(f"{case}, {network}", [apart], detail=detail)


def moved_overlap(results: Results) -> Iterator[Evidence]:
    """Zeros that the residual network's block gains where b + u overlaps, less the prediction."""
    point = RESIDUAL_POINTS[-1]
    for case, (n, m) in SHAPES.items():
        predicted = m if n <= m else 0
        found = _gained(results, A_BLOCK, "residual", case, point)
        along = values(results, 2, "flat", network="residual", case=case, point=point).max()
        detail = f"{_range(found)}, {predicted} predicted; the loss is flat to {along:.1g}"
        yield Evidence(case, [(found - predicted).tolist()], detail=detail)


def ratios_of(results: Results) -> list[float]:
    """The values of u/s of note 3's networks."""
    return sorted(results.rows(reduced)["x"].unique())


def note_3(quantity: str, *networks: str) -> Found:
    """Evidence of a quantity of note 3's networks at all u/s, which is to be 0."""

    def found(results: Results) -> Iterator[Evidence]:
        for network in networks:
            each = values(results, 3, quantity, network=network)
            yield Evidence(network, [each.tolist()], detail=f"{len(ratios_of(results))} values of u/s")

    return found


def note_3_by_ratio(quantity: str, network: str) -> Found:
    """The same for one network, a row for each u/s."""

    def found(results: Results) -> Iterator[Evidence]:
        for ratio in ratios_of(results):
            each = values(results, 3, quantity, network=network, x=ratio)
            yield Evidence(_where(ratio), [each.tolist()], detail=_range(each))

    return found


def _where(ratio: float) -> str:
    return "u = s" if ratio == 1 else f"u = {ratio:.3g} s"


def singular_as_printed(results: Results) -> Iterator[Evidence]:
    """What notes 1 to 3 say alike: columns that should be identical, and eigenvalues that should be 0."""
    residual = NETWORKS[1]
    said = {
        "note 1": (note_1("rows"), note_1("smallest")),
        "note 2": (note_2("rows", *OVERLAPS[:2]), note_2("smallest", *PLAIN_POINTS[1:])),
        "note 3": (note_3_by_ratio("rows", residual), note_3_by_ratio("smallest", residual)),
    }
    for note, both_parts in said.items():
        for part, found in zip(("columns", "smallest eigenvalue"), both_parts, strict=True):
            for row in found(results):
                yield replace(row, condition=f"{note}, {part}, {row.condition}")


def hyper_zeros(results: Results) -> Iterator[Evidence]:
    """Networks whose hyper-residual Hessian has no fewer zeros than the residual one, where that one has any."""
    for ratio in ratios_of(results):
        residual, hyper = (values(results, 3, "zeros", network=name, x=ratio) for name in NETWORKS[1:])
        if (residual > 0).all():
            kept = (hyper >= residual).astype(float).tolist()
            detail = f"zeros: residual {_range(residual)}, hyper-residual {_range(hyper)}"
            yield Evidence(_where(ratio), [kept], detail=detail)


def hyper_columns(results: Results) -> Iterator[Evidence]:
    """Networks in which a_i = a_j makes two columns of the hyper-residual Hessian identical."""
    for row in note_3_by_ratio("rows", NETWORKS[2])(results):
        same = [float(apart <= ROUNDING) for apart in row.samples[0]]
        yield replace(row, samples=[same], detail=f"columns differ by {row.detail}, relative")


def note_3_zeros(results: Results) -> Iterator[Evidence]:
    """Zeros of the reduced Hessians, less the prediction."""
    depth = results.settings.depth
    other = (depth - 1) / (2 * depth - 1)
    for network in NETWORKS:
        apart, seen = [], []
        for ratio in ratios_of(results):
            predicted = depth - 1 if ratio == 1 else int(abs(ratio - other) < ROUNDING)
            found = values(results, 3, "zeros", network=network, x=ratio)
            apart += (found - predicted).tolist()
            seen.append(f"{ratio:.3g}: {_range(found)}")
        yield Evidence(network, [apart], detail=f"zeros by u/s: {', '.join(seen)}")
