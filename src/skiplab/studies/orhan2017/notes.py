"""Notes 1–3: where the Hessian of a network is called singular, and where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Exact
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import singular_evidence as evidence
from skiplab.studies.orhan2017.singular_evidence import A_BLOCK, ROUNDING, values
from skiplab.studies.orhan2017.singular_points import (
    ACTIVATIONS,
    NETWORKS,
    PLAIN_POINTS,
    SHAPES,
    Draws,
    multilayer,
    reduced,
    three_layers,
)

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings:
    """How many random networks of each kind, note 1's samples, note 3's layers and its values of u/s."""

    runs: int
    seed: int = 0
    samples: int = 200
    depth: int = 4
    ratios: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5)


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial for every note and ten networks."""
    seeds = run_seeds(settings.seed, settings.runs)
    calls = []
    for i in range(0, settings.runs, 10):
        some = tuple(seeds[i : i + 10])
        names = f"networks {some[0]}–{some[-1]}"
        calls += [
            multilayer.of(Draws(some, samples=settings.samples), f"note 1, {names}"),
            three_layers.of(Draws(some), f"note 2, {names}"),
            reduced.of(Draws(some, depth=settings.depth, ratios=settings.ratios), f"note 3, {names}"),
        ]
    return calls


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the rows, the smallest eigenvalues, the numbers of zeros and the reduced network's eigenvalues."""
    from skiplab.figures.singular_hessians import note_panels

    case, (_, inputs, width) = next(iter(ACTIVATIONS.items()))
    rows = frame[(frame["quantity"] == "row difference") & (frame["case"] == case)]
    rows = rows[rows["draw"] == rows["draw"].min()].sort_values("x")
    smallest = {
        f"note 1, {name}": (
            values(frame, 1, "smallest", case=name, point="overlap").to_numpy(),
            values(frame, 1, "smallest", case=name, point="overlap, optimum").to_numpy(),
        )
        for name in ACTIVATIONS
    } | {
        f"{network}, {name}": (
            values(frame, 2, "smallest", network=network, case=name, point="b overlaps").to_numpy(),
            values(frame, 2, "smallest", network=network, case=name, point="b overlaps, optimum").to_numpy(),
        )
        for network in NETWORKS[:2]
        for name in SHAPES
    }

    def counts(quantity: str) -> dict[str, list[float]]:
        return {
            f"{network}, {case}": [
                values(frame, 2, quantity, network=network, case=case, point=point).max()
                for point in PLAIN_POINTS
            ]
            for case in SHAPES
            for network in NETWORKS[:2]
        }

    ratios = evidence.ratios_of(frame)

    def by_ratio(quantity: str, networks: Sequence[str]) -> dict[str, Any]:
        return {
            name: [values(frame, 3, quantity, network=name, x=ratio).to_numpy() for ratio in ratios]
            for name in networks
        }

    return note_panels(
        rows["value"].to_numpy(),
        (2 * inputs, width * inputs, width * inputs + width * width),
        smallest,
        PLAIN_POINTS,
        counts("gauss-newton"),
        counts(A_BLOCK),
        ratios,
        by_ratio("eigenvalue", NETWORKS[:2]),
        by_ratio("smallest", NETWORKS),
        settings.depth,
    )


STUDY = Study(
    id="orhan2017/notes",
    words=__file__,
    settings={
        "smoke": Settings(runs=1, samples=100, ratios=(0.5, 1.0)),
        "quick": Settings(runs=20),
        "paper": Settings(runs=100),
    },
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "note-1-equal-gradients",
            "Note 1: where two units have equal incoming weights, ∂E/∂W_ij = ∂E/∂W_ij′.",
            lambda frame, settings: evidence.note_1(frame, "gradients"),
            Exact(rounding=ROUNDING),
            "largest difference, relative",
        ),
        Claim(
            "note-1-rows-printed",
            "Note 1 as printed: the rows of the Hessian for W_ij and W_ij′ are then identical.",
            lambda frame, settings: evidence.note_1(frame, "rows"),
            Exact(rounding=ROUNDING),
            "largest difference, relative",
        ),
        Claim(
            "note-1-rows",
            "Corrected: they agree in all columns but those of the incoming weights of the two units.",
            lambda frame, settings: evidence.note_1(frame, "rows elsewhere"),
            Exact(rounding=ROUNDING),
            "largest difference, relative",
        ),
        Claim(
            "note-1-degenerate-printed",
            "Note 1 as printed: the Hessian is degenerate there.",
            lambda frame, settings: evidence.note_1(frame, "smallest"),
            Exact(rounding=ROUNDING),
            "smallest |eigenvalue|, relative",
        ),
        Claim(
            "note-1-zeros",
            "Corrected: off an optimum it gains a zero for every outgoing weight a unit has more than incoming ones.",
            evidence.note_1_zeros_gained,
            Exact(),
            "zeros gained − predicted",
        ),
        Claim(
            "note-1-block",
            "Corrected: what gains a zero for every outgoing weight is the Gauss–Newton block of their layer.",
            evidence.note_1_block_gained,
            Exact(),
            "zeros gained − predicted",
        ),
        Claim(
            "flat",
            "Notes 1 and 2: the loss is exactly flat along each predicted direction.",
            lambda frame, settings: evidence.note_1_and_2(frame, "flat"),
            Exact(rounding=ROUNDING),
            "largest |ΔE|/E",
        ),
        Claim(
            "not-curved",
            "Notes 1 and 2: dᵀHd = 0 along them.",
            lambda frame, settings: evidence.note_1_and_2(frame, "along"),
            Exact(rounding=ROUNDING),
            "largest |dᵀHd|/‖H‖",
        ),
        Claim(
            "pushed",
            "Corrected: Hd is not 0 along any of them off an optimum, in any network drawn.",
            evidence.pushes,
            Exact(),
            "networks with Hd = 0",
        ),
        Claim(
            "null-at-an-optimum",
            "Corrected: at an optimum Hd = 0.",
            evidence.null_at_an_optimum,
            Exact(rounding=ROUNDING),
            "largest ‖Hd‖/‖H‖",
        ),
        Claim(
            "note-2-derivatives",
            "Note 2: eqs 29, 30, 32 and 33 are the second derivatives in a.",
            evidence.eq_30,
            Exact(rounding=ROUNDING),
            "largest deviation, relative",
        ),
        Claim(
            "note-2-columns-printed",
            "Note 2 as printed: where b_i = b_j (a_i = a_j) the columns of a_i and a_j (b_i and b_j) are identical.",
            lambda frame, settings: evidence.note_2(frame, "rows", evidence.OVERLAPS[:2]),
            Exact(rounding=ROUNDING),
            "largest difference, relative",
        ),
        Claim(
            "note-2-singular-printed",
            "Section 2.3.1 as printed: the plain Hessian is singular where units overlap or a_i = 0.",
            lambda frame, settings: evidence.note_2(frame, "smallest", PLAIN_POINTS[1:]),
            Exact(rounding=ROUNDING),
            "smallest |eigenvalue|, relative",
        ),
        Claim(
            "note-2-residual-printed",
            "Note 2 as printed: the residual network’s Hessian is not singular there.",
            evidence.residual_zeros,
            Exact(),
            "zeros",
        ),
        Claim(
            "gauss-newton-everywhere",
            "Corrected: Gauss–Newton has n² zeros at any generic point (n ≤ m; else 2nm − m²), plain or residual.",
            evidence.generic_zeros,
            Exact(),
            "zeros − predicted",
        ),
        Claim(
            "gauss-newton-gains",
            "Corrected: an overlap of a or b adds m − n to them, of both 2(m − n) + 1, in plain with n ≤ m; "
            "skips: none.",
            evidence.gauss_newton_gains,
            Exact(),
            "zeros gained − predicted",
        ),
        Claim(
            "zeros-by-rank",
            "Corrected: zeros are 2nm − m(r_A + r_B) + r_A r_B in all, m(n − r_B) and m(n − r_A) in the "
            "blocks of a and b.",
            evidence.closed_form_zeros,
            Exact(),
            "zeros − predicted",
        ),
        Claim(
            "block-gains",
            "Corrected: the overlap of b adds m zeros to the block of a, and vice versa, in plain with n ≤ m; "
            "skips: none.",
            evidence.block_gains,
            Exact(),
            "zeros gained − predicted",
        ),
        Claim(
            "skips-move-it",
            "Ours: skips move the singular set: where b_i + u_i = b_j + u_j the residual network’s block gains them.",
            evidence.moved_overlap,
            Exact(),
            "zeros gained − predicted",
        ),
        Claim(
            "note-3-derivatives",
            "Note 3: eqs 36 and 37 are the second derivatives.",
            lambda frame, settings: evidence.note_3(frame, "eqs 36–37", NETWORKS),
            Exact(rounding=ROUNDING),
            "largest deviation, relative",
        ),
        Claim(
            "note-3-columns-printed",
            "Note 3 as printed: where a_i = a_j the residual Hessian’s columns are identical.",
            lambda frame, settings: evidence.note_3_by_ratio(frame, "rows", NETWORKS[1]),
            Exact(rounding=ROUNDING),
            "largest difference, relative",
        ),
        Claim(
            "note-3-degenerate-printed",
            "Note 3 as printed: so it is degenerate.",
            lambda frame, settings: evidence.note_3_by_ratio(frame, "smallest", NETWORKS[1]),
            Exact(rounding=ROUNDING),
            "smallest |eigenvalue|, relative",
        ),
        Claim(
            "note-3-hyper-printed",
            "Note 3 as printed: the hyper-residual Hessian is not degenerate.",
            lambda frame, settings: evidence.note_3_by_ratio(frame, "zeros", NETWORKS[2]),
            Exact(),
            "zeros",
        ),
        Claim(
            "note-3-eigenvalue",
            "Corrected: where a_i = a_j, e_i − e_j is an eigenvector with eigenvalue u(s − u)/(a_i + c)².",
            lambda frame, settings: evidence.note_3(frame, "eigenvalue deviation", NETWORKS[:2]),
            Exact(rounding=ROUNDING),
            "deviation, relative",
        ),
        Claim(
            "note-3-zeros",
            "Corrected: every reduced Hessian has L − 1 zeros at u = s, one at u = s(L − 1)/(2L − 1), else none.",
            evidence.note_3_zeros,
            Exact(),
            "zeros − predicted",
        ),
    ),
    cost={"smoke": 1.5, "quick": 15.0, "paper": 50.0},
)
