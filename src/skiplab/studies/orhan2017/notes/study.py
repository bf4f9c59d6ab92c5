"""What notes 1–3 claim of singular Hessians, as printed and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Results, Study, chunks, scales
from skiplab.studies.orhan2017.notes import evidence
from skiplab.studies.orhan2017.notes.derivatives import PrintedDerivatives, derivatives
from skiplab.studies.orhan2017.notes.evidence import ROUNDING
from skiplab.studies.orhan2017.notes.exchanges import Exchanges, exchangeable, exchanges
from skiplab.studies.orhan2017.notes.trials import (
    NETWORKS,
    SingularNetworks,
    multilayer,
    reduced,
    three_layers,
)


@dataclass(frozen=True)
class Settings:
    """How many random networks of each kind, note 1's samples, note 3's layers and its values of u/s."""

    runs: int = 100
    seed: int = 0
    samples: int = 200
    depth: int = 4
    ratios: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5)


def draws(results: Results) -> list[Call]:
    """Name a trial for every note and ten networks, and one for first derivatives."""
    settings = results.settings
    calls = []
    for some in chunks(run_seeds(settings.seed, settings.runs), 10):
        names = f"networks {some[0]}–{some[-1]}"
        third = SingularNetworks(some, depth=settings.depth, ratios=settings.ratios)
        calls += [
            multilayer.of(SingularNetworks(some, samples=settings.samples), f"note 1, {names}"),
            three_layers.of(SingularNetworks(some), f"note 2, {names}"),
            reduced.of(third, f"note 3, {names}"),
        ]
    all_ = PrintedDerivatives(tuple(run_seeds(settings.seed, settings.runs)))
    pairs = Exchanges(all_.seeds, depth=settings.depth)
    return [*calls, derivatives.of(all_, "first derivatives"), exchanges.of(pairs, "exchanged strengths")]


def figure(results: Results) -> Any:
    """Draw the rows, the smallest eigenvalues, the numbers of zeros and the reduced network's eigenvalues."""
    from skiplab.studies.orhan2017.notes.plot import note_panels

    return note_panels(results)


STUDY = Study(
    id="orhan2017/notes",
    words=__file__,
    settings=scales(Settings, quick={"runs": 20}, smoke={"runs": 1, "samples": 100, "ratios": (0.5, 1.0)}),
    stages=(draws,),
    figure=figure,
    claims=(
        Claim(
            "note-1-derivatives",
            "Eq 27 is the derivative with respect to a single weight.",
            evidence.printed_derivatives("eq 27"),
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation, relative",
            source="ours",
        ),
        Claim(
            "note-1-equal-gradients",
            "Where two units have equal incoming weights, ∂E/∂W_ij = ∂E/∂W_ij′.",
            evidence.note_1("gradients"),
            kind=Exact(rounding=ROUNDING),
            unit="largest difference, relative",
            source="ours",
        ),
        Claim(
            "overlap-singular-printed",
            "Where two units overlap (note 3: two layers), their columns of the Hessian are identical, so that it is "
            "singular.",
            evidence.singular_as_printed,
            kind=Exact(rounding=ROUNDING),
            unit="of columns their difference, of the Hessian its smallest |eigenvalue|, relative",
            source="notes 1 to 3",
        ),
        Claim(
            "note-1-rows",
            "Corrected: these rows agree in all columns but those of the incoming weights of the two units.",
            evidence.note_1("rows elsewhere"),
            kind=Exact(rounding=ROUNDING),
            unit="largest difference, relative",
            source="ours",
        ),
        Claim(
            "note-1-zeros",
            "Corrected: off an optimum the Hessian gains a zero for every outgoing weight that a unit has more than "
            "incoming ones.",
            evidence.note_1_zeros_gained,
            kind=Exact(),
            unit="zeros gained − predicted",
            source="ours",
        ),
        Claim(
            "note-1-block",
            "Corrected: what gains a zero for every outgoing weight is the Gauss–Newton block of their layer.",
            evidence.note_1_block_gained,
            kind=Exact(),
            unit="zeros gained − predicted",
            source="ours",
        ),
        Claim(
            "flat",
            "Parameters of units that overlap are not identifiable: the loss is exactly flat along each predicted "
            "direction.",
            evidence.notes_1_and_2("flat"),
            kind=Exact(rounding=ROUNDING),
            unit="largest |ΔE|/E",
            source="note 1",
        ),
        Claim(
            "not-curved",
            "dᵀHd = 0 along each predicted direction.",
            evidence.notes_1_and_2("along"),
            kind=Exact(rounding=ROUNDING),
            unit="largest |dᵀHd|/‖H‖",
            source="ours",
        ),
        Claim(
            "pushed",
            "Corrected: off an optimum Hd is not 0 along any predicted direction, in any network drawn.",
            evidence.pushes,
            kind=Exact(),
            unit="networks with Hd = 0",
            source="ours",
        ),
        Claim(
            "null-at-an-optimum",
            "Corrected: at an optimum Hd = 0.",
            evidence.null_at_an_optimum,
            kind=Exact(rounding=ROUNDING),
            unit="largest ‖Hd‖/‖H‖",
            source="ours",
        ),
        Claim(
            "note-2-first-derivatives",
            "Eq 28 is the derivative with respect to a_i of one mode.",
            evidence.printed_derivatives("eq 28"),
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation, relative",
            source="ours",
        ),
        Claim(
            "note-2-derivatives",
            "Eqs 29, 30, 32 and 33 are the second derivatives in a.",
            evidence.eq_30,
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation, relative",
            source="ours",
        ),
        Claim(
            "single-zero",
            "Read literally, section 2.3.1 has the plain Hessian singular where one b_i of one mode is zero.",
            evidence.printed_derivatives("smallest"),
            kind=Exact(rounding=ROUNDING),
            unit="smallest |eigenvalue|, relative",
            source="ours",
        ),
        Claim(
            "note-2-residual-printed",
            "The residual network’s Hessian is not singular where units overlap.",
            evidence.residual_zeros,
            kind=Exact(),
            unit="zeros",
            source="ours",
        ),
        Claim(
            "gauss-newton-everywhere",
            "Corrected: Gauss–Newton has n² zeros at any generic point (n ≤ m; else 2nm − m²), plain or residual.",
            evidence.generic_zeros,
            kind=Exact(),
            unit="zeros − predicted",
            source="ours",
        ),
        Claim(
            "gauss-newton-gains",
            "Corrected: an overlap of a or b adds m − n to them, of both 2(m − n) + 1, in plain with n ≤ m; "
            "skips: none.",
            evidence.gauss_newton_gains,
            kind=Exact(),
            unit="zeros gained − predicted",
            source="ours",
        ),
        Claim(
            "zeros-by-rank",
            "Corrected: zeros are 2nm − m(r_A + r_B) + r_A r_B in all, m(n − r_B) and m(n − r_A) in the "
            "blocks of a and b.",
            evidence.closed_form_zeros,
            kind=Exact(),
            unit="zeros − predicted",
            source="ours",
        ),
        Claim(
            "block-gains",
            "Corrected: the overlap of b adds m zeros to the block of a, and vice versa, in plain with n ≤ m; "
            "skips: none.",
            evidence.block_gains,
            kind=Exact(),
            unit="zeros gained − predicted",
            source="ours",
        ),
        Claim(
            "skips-move-it",
            "Skips move the singular set: where b_i + u_i = b_j + u_j the residual network’s block gains them.",
            evidence.moved_overlap,
            kind=Exact(),
            unit="zeros gained − predicted",
            source="ours",
        ),
        Claim(
            "note-3-first-derivatives",
            "Eq 35 is the derivative with respect to a_i.",
            evidence.printed_derivatives("eq 35"),
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation, relative",
            source="ours",
        ),
        Claim(
            "note-3-derivatives",
            "Eqs 36 and 37 are the second derivatives.",
            evidence.note_3("eqs 36–37", *NETWORKS),
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation, relative",
            source="ours",
        ),
        Claim(
            "exchanged-layers",
            "The residual energy, eq 22, has a permutation symmetry between the mode strengths "
            "of layers, and the hyper-residual one, eq 23, does not.",
            exchangeable,
            kind=Exact(),
            unit="networks that disagree",
            source="ours",
        ),
        Claim(
            "note-3-hyper",
            "The hyper-residual network breaks this degeneracy: where a_i = a_j and the residual network’s Hessian "
            "is singular, that of the hyper-residual network has fewer zeros.",
            evidence.hyper_zeros,
            kind=Exact(),
            unit="networks with as many zeros",
            source="ours",
        ),
        Claim(
            "note-3-columns",
            "Corrected: where a_i = a_j no two columns of the hyper-residual Hessian are identical.",
            evidence.hyper_columns,
            kind=Exact(),
            unit="networks with identical columns",
            source="ours",
        ),
        Claim(
            "note-3-eigenvalue",
            "Corrected: where a_i = a_j, e_i − e_j is an eigenvector with eigenvalue u(s − u)/(a_i + c)².",
            evidence.note_3("eigenvalue deviation", *NETWORKS[:2]),
            kind=Exact(rounding=ROUNDING),
            unit="deviation, relative",
            source="ours",
        ),
        Claim(
            "note-3-zeros",
            "Corrected: every reduced Hessian has L − 1 zeros at u = s, one at u = s(L − 1)/(2L − 1), else none.",
            evidence.note_3_zeros,
            kind=Exact(),
            unit="zeros − predicted",
            source="ours",
        ),
    ),
    cost={"smoke": 1.5, "quick": 15.0, "paper": 50.0},
)
