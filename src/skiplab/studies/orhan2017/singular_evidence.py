"""Evidence for the claims of notes 1–3, drawn from the table of their singular points."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.claim import Evidence
from skiplab.studies.orhan2017.singular_points import (
    ACTIVATIONS,
    NETWORKS,
    PLAIN_POINTS,
    RESIDUAL_POINTS,
    SHAPES,
)

if TYPE_CHECKING:
    import pandas as pd

ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and a few hundred terms are added
OVERLAPS = ("a overlaps", "b overlaps", "both overlap")
A_BLOCK, B_BLOCK = "a-block", "b-block"


def values(frame: pd.DataFrame, note: int, quantity: str, **where: str | float) -> pd.Series[float]:
    """The numbers of one quantity by draw, chosen further by network, case, point or x."""
    chosen = (frame["note"] == note) & (frame["quantity"] == quantity)
    for column, value in where.items():
        chosen &= frame[column] == value
    return frame[chosen].set_index("draw")["value"]


def _range(numbers: pd.Series[float]) -> str:
    low, high = numbers.min(), numbers.max()
    return f"{low:.2g}" if low == high else f"{low:.2g} to {high:.2g}"


def note_1(frame: pd.DataFrame, quantity: str, point: str = "overlap") -> Iterator[Evidence]:
    """A quantity of note 1's networks, which is to be 0."""
    for case in ACTIVATIONS:
        found = values(frame, 1, quantity, case=case, point=point)
        yield Evidence(case, [found.tolist()], detail=f"{_range(found)} over {len(found)} networks")


def note_1_zeros_gained(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros that H gains, less max(0, outgoing − incoming weights)."""
    for case, (_, incoming, outgoing) in ACTIVATIONS.items():
        found, predicted = values(frame, 1, "gained", case=case), max(0, outgoing - incoming)
        yield Evidence(case, [(found - predicted).tolist()], detail=f"{_range(found)}, {predicted} predicted")


def note_1_block_gained(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros that the Gauss–Newton block gains, less the outgoing weights."""
    for case, (_, _, outgoing) in ACTIVATIONS.items():
        found = values(frame, 1, "block gained", case=case)
        yield Evidence(case, [(found - outgoing).tolist()], detail=f"{_range(found)}, {outgoing} predicted")


def note_2(frame: pd.DataFrame, quantity: str, points: Sequence[str]) -> Iterator[Evidence]:
    """A quantity of note 2's plain networks at some points, which is to be 0."""
    for case in SHAPES:
        found = [values(frame, 2, quantity, network="plain", case=case, point=point) for point in points]
        ranges = ", ".join(f"{point}: {_range(each)}" for point, each in zip(points, found, strict=True))
        yield Evidence(f"linear, {case}", [[float(v) for each in found for v in each]], detail=ranges)


def note_1_and_2(frame: pd.DataFrame, quantity: str) -> Iterator[Evidence]:
    """A quantity at the overlaps of both notes' plain networks, and where a unit's weights vanish."""
    yield from note_1(frame, quantity)
    yield from note_2(frame, quantity, PLAIN_POINTS[1:])


def pushes(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Networks in which ‖Hd‖ is 0 for some direction."""
    for row in note_1_and_2(frame, "push"):
        unmoved = [float(value <= ROUNDING) for value in row.samples[0]]
        yield Evidence(row.condition, [unmoved], detail=f"the smallest ‖Hd‖/‖H‖ is {min(row.samples[0]):.2g}")


def null_at_an_optimum(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """The largest ‖Hd‖ at an optimum."""
    yield from note_1(frame, "largest push", "overlap, optimum")
    yield from note_2(frame, "largest push", ("b overlaps, optimum",))


def eq_30(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """How far H's block of a is from the printed second derivatives."""
    for network in NETWORKS[:2]:
        yield Evidence(network, [values(frame, 2, "eq 30", network=network).tolist()])


def residual_zeros(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros of the residual network's H at overlaps; further rows at an optimum."""
    at_an_optimum = ("b overlaps, optimum",)
    for case in SHAPES:
        for where, points in (("", OVERLAPS), (", optimum", at_an_optimum)):
            ours, plain = (
                [
                    v
                    for point in points
                    for v in values(frame, 2, "zeros", network=name, case=case, point=point)
                ]
                for name in ("residual", "plain")
            )
            detail = f"up to {max(ours):g} zeros, in the plain network {max(plain):g}"
            yield Evidence(f"{case}{where}", [ours], headline=points is OVERLAPS, detail=detail)


def generic_zeros(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros of Gauss–Newton at generic points, less those that the symmetry B A = (B G⁻¹)(G A) makes."""
    for case, (hidden, modes) in SHAPES.items():
        predicted = hidden**2 if hidden <= modes else 2 * hidden * modes - modes**2
        for network in NETWORKS[:2]:
            found = values(frame, 2, "gauss-newton", network=network, case=case, point="generic")
            detail = f"{_range(found)}, {predicted} predicted"
            yield Evidence(f"{case}, {network}", [(found - predicted).tolist()], detail=detail)


def _gained(frame: pd.DataFrame, quantity: str, network: str, case: str, point: str) -> pd.Series[float]:
    """Zeros at the point less those of the same networks at a generic one."""
    at, generic = (
        values(frame, 2, quantity, network=network, case=case, point=place) for place in (point, "generic")
    )
    return at - generic


def gauss_newton_gains(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros that Gauss–Newton gains at overlaps, less the prediction."""
    for case, (n, m) in SHAPES.items():
        for network in NETWORKS[:2]:
            apart, found = [], []
            for point in OVERLAPS:
                predicted = 2 * (m - n) + 1 if point == "both overlap" else m - n
                gained = _gained(frame, "gauss-newton", network, case, point)
                apart += (gained - (predicted if network == "plain" and n <= m else 0)).tolist()
                found.append(f"{point}: {_range(gained)}")
            yield Evidence(f"{case}, {network}", [apart], detail=", ".join(found))


def closed_form_zeros(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros less the closed forms with the ranks found, at all points."""
    for quantity, where in (("gauss-newton", "whole matrix"), (A_BLOCK, A_BLOCK), (B_BLOCK, B_BLOCK)):
        found, predicted = (values(frame, 2, name).to_numpy() for name in (quantity, f"{quantity} predicted"))
        detail = f"{len(found)} networks of all shapes at all points"
        yield Evidence(where, [(found - predicted).tolist()], detail=detail)


def block_gains(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros that the block of a gains where b overlaps, and vice versa, less the prediction."""
    for case, (n, m) in SHAPES.items():
        for network in NETWORKS[:2]:
            predicted = m if network == "plain" and n <= m else 0
            blocks = [
                _gained(frame, block, network, case, point)
                for point, block in (("b overlaps", A_BLOCK), ("a overlaps", B_BLOCK))
            ]
            detail = f"{_range(blocks[0])} and {_range(blocks[1])}, {predicted} predicted"
            apart = [float(v - predicted) for block in blocks for v in block]
            yield Evidence(f"{case}, {network}", [apart], detail=detail)


def moved_overlap(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros that the residual network's block gains where b + u overlaps, less the prediction."""
    point = RESIDUAL_POINTS[-1]
    for case, (n, m) in SHAPES.items():
        predicted = m if n <= m else 0
        found = _gained(frame, A_BLOCK, "residual", case, point)
        along = values(frame, 2, "flat", network="residual", case=case, point=point).max()
        detail = f"{_range(found)}, {predicted} predicted; the loss is flat to {along:.1g}"
        yield Evidence(case, [(found - predicted).tolist()], detail=detail)


def ratios_of(frame: pd.DataFrame) -> list[float]:
    """The values of u/s of note 3's networks."""
    return sorted(frame.loc[frame["note"] == 3, "x"].unique())


def note_3(frame: pd.DataFrame, quantity: str, networks: Sequence[str]) -> Iterator[Evidence]:
    """A quantity of note 3's networks at all u/s, which is to be 0."""
    for network in networks:
        found = values(frame, 3, quantity, network=network)
        yield Evidence(network, [found.tolist()], detail=f"{len(ratios_of(frame))} values of u/s")


def note_3_by_ratio(frame: pd.DataFrame, quantity: str, network: str) -> Iterator[Evidence]:
    """The same for one network, a row each u/s."""
    for ratio in ratios_of(frame):
        found = values(frame, 3, quantity, network=network, x=ratio)
        where = "u = s" if ratio == 1 else f"u = {ratio:.3g} s"
        yield Evidence(where, [found.tolist()], detail=_range(found))


def note_3_zeros(frame: pd.DataFrame, settings: Any) -> Iterator[Evidence]:
    """Zeros of the reduced Hessians, less the prediction."""
    other = (settings.depth - 1) / (2 * settings.depth - 1)
    for network in NETWORKS:
        apart, seen = [], []
        for ratio in ratios_of(frame):
            predicted = settings.depth - 1 if ratio == 1 else int(abs(ratio - other) < ROUNDING)
            found = values(frame, 3, "zeros", network=network, x=ratio)
            apart += (found - predicted).tolist()
            seen.append(f"{ratio:.3g}: {_range(found)}")
        yield Evidence(network, [apart], detail=f"zeros by u/s: {', '.join(seen)}")
