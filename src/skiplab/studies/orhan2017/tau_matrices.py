"""Skip matrices Σ = T O T⁻¹ of the τ family, drawn and measured: note 4's, and those of figure 10's networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction.results import matching
from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    import torch

SPECTRA = ("prescribed", "correlation R", "covariance of skip vectors")


@dataclass(frozen=True)
class TauMatrices:
    """Settings of one trial: the random matrices of one τ."""

    tau: float
    seeds: tuple[int, ...]
    width: int = 128


@trial("orhan2017/tau-matrices", version=1)
def matrices(settings: TauMatrices, bench: Bench) -> pd.DataFrame:
    """Draw T and O, build Σ, and measure it; one row per number, or per rank (x) of a spectrum.

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


def values(rows: pd.DataFrame, tau: float, quantity: str) -> pd.Series[float]:
    """The numbers of a quantity at one τ, by draw, from rows of the trial."""
    return matching(rows, tau=tau, quantity=quantity).set_index("draw")["value"]
