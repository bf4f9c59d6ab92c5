"""Note 4: skip matrices Σ = T O T⁻¹ with eigenvalues on the unit circle and correlated eigenvectors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact, Ordered
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import pandas as pd
    import torch

ROUNDING = 1e-10  # relative; eigenvectors of a random orthogonal matrix are that well known
WORKS = 32  # Cholesky's factor exists in float64 while τ(n − 1) ≤ 32, that is while exp(−32) ≈ 57 eps
SPECTRA = ("prescribed", "correlation R", "covariance of skip vectors")


@dataclass(frozen=True)
class Settings:
    """How many random matrices of each τ, their size, and the values of τ."""

    runs: int
    seed: int = 0
    width: int = 128
    taus: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.28)


@dataclass(frozen=True)
class Matrices:
    """Settings of one trial: the random matrices of one τ."""

    tau: float
    seeds: tuple[int, ...]
    width: int = 128


@trial("orhan2017/tau-matrices", version=1)
def matrices(settings: Matrices, bench: Bench) -> pd.DataFrame:
    """Draw T and O, build Σ, and measure it; one row a number, or a rank (x) of a spectrum.

    ``failed`` is 1 where R has no Cholesky factor in float64; such a draw has no other rows. Distances are largest
    entries relative to the largest entry of what they are distances from; O = U L Uᴴ with eigenvectors U.
    """
    import pandas as pd

    from skiplab.architectures.skip_matrices import Tau, correlation_factor, orthogonal
    from skiplab.checks import Refused
    from skiplab.randomness import torch_generator

    rows: list[tuple[int, str, float, float]] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"matrix {seed}")
        parts = (seed, "note 4", f"{settings.tau:g}")  # each τ draws its own, so that τ can be compared
        stream = torch_generator(*parts)
        try:
            factor = correlation_factor(settings.width, settings.tau, stream)
        except Refused:
            rows.append((seed, "failed", 0.0, 1.0))
            continue
        plain = orthogonal(settings.width, stream)  # the one that Tau draws next from the same stream
        skip = Tau(settings.tau).matrix(settings.width, torch_generator(*parts))
        rows.append((seed, "failed", 0.0, 0.0))
        rows += [(seed, name, 0.0, value) for name, value in _numbers(factor, plain, skip).items()]
        for name, values in _spectra(settings.tau, factor, skip).items():
            rows += [(seed, name, float(rank), float(value)) for rank, value in enumerate(values, start=1)]
    frame = pd.DataFrame(rows, columns=["draw", "quantity", "x", "value"])
    return frame.assign(tau=settings.tau)


def _numbers(factor: torch.Tensor, plain: torch.Tensor, skip: torch.Tensor) -> dict[str, float]:
    import torch

    n, eps = len(skip), torch.finfo(torch.float64).eps
    eigenvalues, unitary = torch.linalg.eig(plain)
    found = torch.linalg.eigvals(skip)
    condition = float(torch.linalg.cond(factor))
    R = factor @ factor.T
    vectors = factor.to(unitary.dtype) @ unitary
    unit = vectors / vectors.norm(dim=0)
    gram = unit.conj().T @ unit
    rows = skip / skip.norm(dim=1, keepdim=True)
    by_hermitian = (unitary * eigenvalues) @ unitary.conj().T
    by_transpose = (unitary * eigenvalues) @ unitary.T
    assembled = (vectors * eigenvalues) @ torch.linalg.inv(vectors)
    # Conjugate pairs: moduli of angles, sorted, are matched without regard to an eigenvalue's place.
    angles = (found.angle().abs().sort().values - eigenvalues.angle().abs().sort().values).abs().max()
    return {
        "deviation": float((found.abs() - 1).abs().max()),
        "angle": float(angles),
        "bound": n * eps * condition**2,
        "eps cond": eps * condition,
        "condition": condition,
        "norm": float(torch.linalg.matrix_norm(skip, 2)),
        "U L Uᴴ": _distance(by_hermitian, plain),
        "U L Uᵀ": _distance(by_transpose, plain),
        "imaginary": float(assembled.imag.abs().max() / skip.abs().max()),
        "covariance of eigenvectors": _distance(vectors @ vectors.conj().T, R),
        "overlaps of eigenvectors": float((gram.abs() - R.abs()).abs().max()),
        "eigenvectors": _mean_correlation(gram),
        "skip vectors": _mean_correlation(rows @ rows.T),
    }


def _distance(one: torch.Tensor, other: torch.Tensor) -> float:
    return float((one - other).abs().max() / other.abs().max())


def _mean_correlation(gram: torch.Tensor) -> float:
    n = len(gram)
    return float((gram.abs().sum() - gram.diagonal().abs().sum()) / (n * (n - 1)))


def _spectra(tau: float, factor: torch.Tensor, skip: torch.Tensor) -> dict[str, torch.Tensor]:
    """Eigenvalues in falling order; those of TTᵀ and ΣΣᵀ as squared singular values, which keeps small ones."""
    import torch

    eigenvalues = torch.linalg.eigvals(skip)
    ranks = torch.arange(len(skip), dtype=torch.float64)
    return {
        "prescribed": torch.exp(-tau * ranks),
        "correlation R": torch.linalg.svdvals(factor).square(),
        "covariance of skip vectors": torch.linalg.svdvals(skip).square(),
        "real": eigenvalues.real,
        "imag": eigenvalues.imag,
    }


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial a τ."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        matrices.of(Matrices(tau, seeds, settings.width), f"τ = {tau:g}, {len(seeds)} matrices")
        for tau in settings.taus
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def values(frame: pd.DataFrame, tau: float, quantity: str) -> pd.Series[float]:
    """The numbers of a quantity at one τ, by draw."""
    chosen = (frame["tau"] == tau) & (frame["quantity"] == quantity)
    return frame[chosen].set_index("draw")["value"]


def built(frame: pd.DataFrame, settings: Settings) -> list[float]:
    """The τ at which some matrix could be built."""
    return [tau for tau in settings.taus if len(values(frame, tau, "norm"))]


def _within(frame: pd.DataFrame, settings: Settings, quantity: str) -> Iterator[Evidence]:
    for tau in built(frame, settings):
        found, bound = values(frame, tau, quantity), values(frame, tau, "bound")
        detail = f"{found.max():.2g}, bound {bound.min():.2g}"
        if quantity == "deviation":
            detail += f", {(found / values(frame, tau, 'eps cond')).max():.2g} eps·cond(T)"
        excess = (found / bound - 1).clip(lower=0).tolist()
        # A bound of 1 or more allows anything.
        yield Evidence(f"τ = {tau:g}", [excess], headline=bool(bound.max() < 1), detail=detail)


def _all(frame: pd.DataFrame, quantity: str) -> Iterator[Evidence]:
    found = frame.loc[frame["quantity"] == quantity, "value"]
    yield Evidence("every O drawn", [found.tolist()], detail=f"{found.min():.2g} to {found.max():.2g}")


def _by_tau(frame: pd.DataFrame, settings: Settings, quantity: str) -> Iterator[Evidence]:
    for tau in built(frame, settings):
        yield Evidence(f"τ = {tau:g}", [values(frame, tau, quantity).tolist()])


def _real(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for tau in built(frame, settings):
        found, bound = values(frame, tau, "imaginary"), settings.width * values(frame, tau, "eps cond")
        yield Evidence(
            f"τ = {tau:g}", [(found / bound - 1).clip(lower=0).tolist()], detail=f"{found.max():.2g}"
        )


def _as_prescribed(frame: pd.DataFrame, settings: Settings, quantity: str) -> Iterator[Evidence]:
    """The largest |λ_i − exp(−τ(i − 1))| of every draw."""
    for tau in built(frame, settings):
        chosen = frame[(frame["tau"] == tau) & frame["quantity"].isin((quantity, "prescribed"))]
        wide = chosen.pivot(index=["draw", "x"], columns="quantity", values="value")
        apart = (wide[quantity] - wide["prescribed"]).abs().groupby("draw").max()
        first = wide[quantity].groupby("draw").max()
        detail = f"the largest eigenvalue is {first.mean():.3g}, prescribed 1"
        yield Evidence(f"τ = {tau:g}", [apart.tolist()], detail=detail)


def _rising(frame: pd.DataFrame, settings: Settings, quantities: Sequence[str]) -> Iterator[Evidence]:
    for quantity in quantities:
        samples = [values(frame, tau, quantity).tolist() for tau in built(frame, settings)]
        ends = f"{sum(samples[0]) / len(samples[0]):.3g} to {sum(samples[-1]) / len(samples[-1]):.3g}"
        yield Evidence(quantity, samples, detail=f"from {ends}")


def _exists(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for tau in settings.taus:
        inside = tau * (settings.width - 1) <= WORKS
        failed = values(frame, tau, "failed")
        detail = f"{int(failed.sum())} of {len(failed)} draws have no factor"
        yield Evidence(f"τ = {tau:g}", [failed.tolist()], headline=inside, detail=detail)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw eigenvalues, their deviation, norms, the three spectra, correlations and the two readings of R."""
    from skiplab.figures.skip_spectra import skip_matrix_panels

    taus = built(frame, settings)
    shown = min(taus, key=lambda tau: abs(tau * (settings.width - 1) - 12.7))  # τ = .1 at 128 units

    def over_tau(quantity: str) -> Any:
        import numpy as np

        runs = [values(frame, tau, quantity).to_numpy() for tau in taus]
        return np.array([[each.min(), each.mean(), each.max()] for each in runs])

    def by_rank(quantity: str) -> Any:
        chosen = frame[(frame["tau"] == shown) & (frame["quantity"] == quantity)]
        return chosen.pivot(index="draw", columns="x", values="value").to_numpy(dtype=float)

    names = ("deviation", "bound", "eps cond", "norm", "condition", "eigenvectors", "skip vectors")
    readings = ("covariance of eigenvectors", "overlaps of eigenvectors")
    return skip_matrix_panels(
        taus,
        {name: over_tau(name) for name in (*names, *readings)},
        {name: by_rank(name) for name in SPECTRA},
        (by_rank("real")[0], by_rank("imag")[0]),
        shown,
    )


STUDY = Study(
    id="orhan2017/note-4",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, width=16, taus=(0.0, 0.4)),
        "quick": Settings(runs=5),
        "paper": Settings(runs=20, taus=(*Settings.taus, 0.3, 0.32)),
    },
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "unit-circle",
            "The eigenvalues of Σ lie on the unit circle, up to n·eps·cond(T)².",
            lambda frame, settings: _within(frame, settings, "deviation"),
            Exact(),
            "excess over the bound",
        ),
        Claim(
            "spectrum-of-o",
            "Σ has the eigenvalues of O: their angles agree up to n·eps·cond(T)².",
            lambda frame, settings: _within(frame, settings, "angle"),
            Exact(),
            "excess over the bound",
        ),
        Claim(
            "transpose-printed",
            "As printed, O = U L Uᵀ.",
            lambda frame, settings: _all(frame, "U L Uᵀ"),
            Exact(rounding=ROUNDING),
            "largest deviation, relative",
        ),
        Claim(
            "hermitian",
            "Corrected: O = U L Uᴴ.",
            lambda frame, settings: _all(frame, "U L Uᴴ"),
            Exact(rounding=ROUNDING),
            "largest deviation, relative",
        ),
        Claim(
            "real",
            "Σ is real: T U L U⁻¹ T⁻¹ has no imaginary part, up to n·eps·cond(T).",
            _real,
            Exact(),
            "excess over the bound",
        ),
        Claim(
            "prescribed-printed",
            "As printed, the eigenvalues of the matrix that correlates the vectors are exp(−τ(i − 1)).",
            lambda frame, settings: _as_prescribed(frame, settings, "correlation R"),
            Exact(rounding=ROUNDING),
            "largest |λ − prescribed|",
        ),
        Claim(
            "skip-vectors-printed",
            "As the caption of figure 10 says, exp(−τ(i − 1)) are the eigenvalues of the skip vectors’ covariance.",
            lambda frame, settings: _as_prescribed(frame, settings, "covariance of skip vectors"),
            Exact(rounding=ROUNDING),
            "largest |λ − prescribed|",
        ),
        Claim(
            "covariance-of-eigenvectors",
            "The covariance of the eigenvectors’ coordinates, Σ_k v_k v_kᴴ with v_k = T u_k, is R.",
            lambda frame, settings: _by_tau(frame, settings, "covariance of eigenvectors"),
            Exact(rounding=ROUNDING),
            "largest deviation, relative",
        ),
        Claim(
            "overlaps-printed",
            "Read as correlations between eigenvectors, |v_jᴴ v_k| of unit eigenvectors are the entries |R_jk|.",
            lambda frame, settings: _by_tau(frame, settings, "overlaps of eigenvectors"),
            Exact(rounding=ROUNDING),
            "largest deviation",
        ),
        Claim(
            "less-orthogonal",
            "The larger τ, the more correlated the eigenvectors, and the skip vectors too.",
            lambda frame, settings: _rising(frame, settings, ("eigenvectors", "skip vectors")),
            Ordered(),
            "P(larger τ > smaller τ)",
        ),
        Claim(
            "norm-grows",
            "Ours: ‖Σ‖₂ grows with τ though the eigenvalues do not.",
            lambda frame, settings: _rising(frame, settings, ("norm",)),
            Ordered(),
            "P(larger τ > smaller τ)",
        ),
        Claim(
            "factor-exists",
            "Ours: R has a Cholesky factor in float64 up to τ = 32/(n − 1), .25 for 128 units.",
            _exists,
            Exact(),
            "draws without a factor",
        ),
    ),
    cost={"smoke": 0.2, "quick": 5.0, "paper": 10.0},
)
