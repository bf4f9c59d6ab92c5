"""What note 4 claims of its skip matrices, as printed and corrected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Ordered, Results, Study, scales
from skiplab.studies.orhan2017.note_4 import evidence
from skiplab.studies.orhan2017.tau_matrices import TauMatrices, matrices

ROUNDING = 1e-10  # relative; eigenvectors of a random orthogonal matrix are that well known
TAUS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.28)


@dataclass(frozen=True)
class Settings:
    """How many random matrices of each τ, their size, and the values of τ."""

    runs: int = 20
    seed: int = 0
    width: int = 128
    taus: tuple[float, ...] = (*TAUS, 0.3, 0.32)


def draws(results: Results) -> list[Call]:
    """Name a trial for every τ."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        matrices.of(TauMatrices(tau, seeds, settings.width), f"τ = {tau:g}, {len(seeds)} matrices")
        for tau in settings.taus
    ]


def figure(results: Results) -> Any:
    """Draw eigenvalues, their deviation, norms, the three spectra, correlations and the two readings of R."""
    from skiplab.studies.orhan2017.note_4.plot import skip_matrix_panels

    return skip_matrix_panels(results)


STUDY = Study(
    id="orhan2017/note-4",
    words=__file__,
    settings=scales(
        Settings, quick={"runs": 5, "taus": TAUS}, smoke={"runs": 2, "width": 16, "taus": (0.0, 0.4)}
    ),
    stages=(draws,),
    figure=figure,
    claims=(
        Claim(
            "unit-circle",
            "The eigenvalues of Σ lie on the unit circle, up to n·eps·cond(T)².",
            evidence.within_bound("deviation"),
            kind=Exact(),
            unit="excess over the bound",
            source="ours",
        ),
        Claim(
            "spectrum-of-o",
            "Σ has the eigenvalues of O: their angles agree up to n·eps·cond(T)².",
            evidence.within_bound("angle"),
            kind=Exact(),
            unit="excess over the bound",
            source="ours",
        ),
        Claim(
            "diagonal",
            "O = U L Uᴴ, note 4's transpose read as the conjugate one that complex eigenvectors take.",
            evidence.diagonalised,
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation, relative",
            source="ours",
        ),
        Claim(
            "real",
            "Σ is real: T U L U⁻¹ T⁻¹ has no imaginary part, up to n·eps·cond(T).",
            evidence.real,
            kind=Exact(),
            unit="excess over the bound",
            source="ours",
        ),
        Claim(
            "correlation-as-prescribed",
            "R, with which the construction goes on, has the eigenvalues exp(−τ(i − 1)) that S is given.",
            evidence.as_prescribed("correlation R"),
            kind=Exact(rounding=ROUNDING),
            unit="largest |λ − prescribed|",
            source="ours",
        ),
        Claim(
            "skip-vectors-printed",
            "exp(−τ(i − 1)) are the eigenvalues of the skip vectors’ covariance.",
            evidence.as_prescribed("covariance of skip vectors"),
            kind=Exact(rounding=ROUNDING),
            unit="largest |λ − prescribed|",
            source="section 2.4.2",
        ),
        Claim(
            "covariance-of-eigenvectors",
            "The covariance of the eigenvectors’ coordinates, Σ_k v_k v_kᴴ with v_k = T u_k, is R: T U Uᴴ Tᵀ = T Tᵀ.",
            evidence.by_tau("covariance of eigenvectors"),
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation, relative",
            source="ours",
        ),
        Claim(
            "overlaps-of-eigenvectors",
            "Read as correlations between eigenvectors, |v_jᴴ v_k| of unit eigenvectors are the entries |R_jk|.",
            evidence.by_tau("overlaps of eigenvectors"),
            kind=Exact(rounding=ROUNDING),
            unit="largest deviation",
            source="ours",
        ),
        Claim(
            "less-orthogonal",
            "The larger τ, the more correlated the eigenvectors, and the skip vectors too.",
            evidence.rising("eigenvectors", "skip vectors"),
            kind=Ordered(),
            unit="P(larger τ > smaller τ)",
            source="note 4",
        ),
        Claim(
            "norm-grows",
            "‖Σ‖₂ grows with τ though the eigenvalues do not.",
            evidence.rising("norm"),
            kind=Ordered(),
            unit="P(larger τ > smaller τ)",
            source="ours",
        ),
        Claim(
            "factor-exists",
            "R has a Cholesky factor in float64 up to τ = 32/(n − 1), .25 for 128 units.",
            evidence.exists,
            kind=Exact(),
            unit="draws without a factor",
            source="ours",
        ),
    ),
    cost={"smoke": 0.2, "quick": 5.0, "paper": 10.0},
)
