"""Fixed skip matrices Q of orhan2017: identity, random orthogonal, folded, and the τ family.

A specification such as ``Folded(distinct=32)`` says what kind of matrix; ``matrix(n, generator)`` draws one
in float64. Every layer draws its own, or all have one if the kind is wrapped in ``Shared`` (the paper does
not say which; drawing each is ours). Activities are rows of a batch, so Q x is ``F.linear(x, Q)``: row i of
Q is the skip vector into unit i, column j the one out of unit j.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.initialisers import standard_normal
from skiplab.checks import Refused, one_of, require
from skiplab.shapes import Rows, SquareMatrix


def orthogonal(n: int, generator: torch.Generator) -> SquareMatrix:
    """Draw an orthogonal matrix uniformly (Haar)."""
    q, r = torch.linalg.qr(standard_normal((n, n), generator))
    # LAPACK's signs depend on the entries; fixing R's diagonal to be positive makes Q uniform.
    return q * torch.where(r.diagonal() < 0, -1.0, 1.0)


def correlation_factor(n: int, tau: float, generator: torch.Generator) -> SquareMatrix:
    """Draw T of note 4: R = T Tᵀ is the correlation matrix of S = V Λ Vᵀ, Λ_ii = exp(−τ(i − 1))."""
    require(0 <= tau < math.inf, f"tau is {tau}, but must be a finite number of at least 0.")
    v = orthogonal(n, generator)
    spectrum = torch.exp(-tau * torch.arange(n, dtype=torch.float64))
    s = (v * spectrum) @ v.T
    s = (s + s.T) / 2
    deviations = s.diagonal().sqrt()
    t, failed = torch.linalg.cholesky_ex(s / torch.outer(deviations, deviations))
    if failed:
        raise Refused(
            f"tau = {tau} makes the correlation matrix of {n} eigenvectors singular in float64; "
            f"choose tau at most {32 / (n - 1):.2g} for n = {n}."
        )
    return t


class SkipMatrix(ABC):
    """A kind of skip matrix, from which each layer draws its own."""

    @abstractmethod
    def matrix(self, n: int, generator: torch.Generator) -> SquareMatrix:
        """Draw an n × n matrix in float64."""


@dataclass(frozen=True)
class Identity(SkipMatrix):
    """Q = I; networks then add the activities themselves, without a product."""

    def matrix(self, n: int, generator: torch.Generator) -> SquareMatrix:
        return torch.eye(n, dtype=torch.float64)


IDENTITY = Identity()


@dataclass(frozen=True)
class Orthogonal(SkipMatrix):
    """A random dense orthogonal matrix (section 2.4.2)."""

    def matrix(self, n: int, generator: torch.Generator) -> SquareMatrix:
        return orthogonal(n, generator)


@dataclass(frozen=True)
class Folded(SkipMatrix):
    """An orthogonal matrix halved until ``distinct`` different vectors are left (section 2.4.2).

    The first half is copied onto the second, then the first quarter onto the others, and so on "until the
    columns of the matrix were repeats of a single unit vector". The rank is ``distinct``. As printed, with
    Q x, columns are the vectors *out of* units; ``repeats="rows"`` repeats the vectors *into* units, which
    is what the paper's argument speaks of (and its columns, had it computed x Q).
    """

    distinct: int
    repeats: str = "columns"

    def __post_init__(self) -> None:
        one_of("repeats", self.repeats, ("columns", "rows"))

    def matrix(self, n: int, generator: torch.Generator) -> SquareMatrix:
        choices = [n >> k for k in range(n.bit_length()) if (n >> k) << k == n]
        require(
            self.distinct in choices,
            f"{n} vectors cannot be folded by halving to {self.distinct} distinct ones; choose distinct "
            f"among {', '.join(map(str, choices))}, or a width that is a power of two times {self.distinct}.",
        )
        folded = orthogonal(n, generator)[:, : self.distinct].repeat(1, n // self.distinct)
        return folded if self.repeats == "columns" else folded.T.contiguous()


@dataclass(frozen=True)
class Constant(SkipMatrix):
    """Every entry is 1/n: each unit receives the mean activity, so that units may be renamed as without skips.

    It is eq 4's matrix of ones but for the scale, which leaves the one eigenvalue that is not 0 at 1: over 30 layers
    of 128 units a matrix of ones would enlarge activities 10⁶³-fold.
    """

    def matrix(self, n: int, generator: torch.Generator) -> SquareMatrix:
        return torch.full((n, n), 1 / n, dtype=torch.float64)


@dataclass(frozen=True)
class Tau(SkipMatrix):
    """Supplementary note 4: Σ = T O T⁻¹, eigenvalues on the unit circle but eigenvectors correlated.

    O is random orthogonal and R = T Tᵀ, the correlation of the eigenvectors, has the spectrum that
    ``correlation_factor`` gives it. Σ is O at τ = 0. In floating point the moduli of the eigenvalues are 1
    up to n·eps·cond(T)², for Σ errs by eps·cond(T) and its eigenvalues are cond(T) times as sensitive (Bauer
    and Fike); ‖Σ‖₂ grows fast: about 1.6, 13, 222 at τ = .01, .05, .1 for n = 128.

    The unit circle bounds a product of skips only if all layers share Σ, as Σᵏ = T Oᵏ T⁻¹: use
    ``Shared(Tau(…))`` in deep networks. Independent draws multiply norms: over 30 layers of 128 units with
    Glorot weights of gain .1, τ = .05 enlarged activities 4·10¹⁶-fold, and 12-fold when shared.
    """

    tau: float

    def matrix(self, n: int, generator: torch.Generator) -> SquareMatrix:
        t = correlation_factor(n, self.tau, generator)
        return torch.linalg.solve_triangular(t, t @ orthogonal(n, generator), upper=False, left=False)


@dataclass(frozen=True)
class Shared(SkipMatrix):
    """One matrix of another kind for all layers, instead of one drawn for each."""

    kind: SkipMatrix

    def matrix(self, n: int, generator: torch.Generator) -> SquareMatrix:
        return self.kind.matrix(n, generator)


class FixedSkip(nn.Module):
    """Q x with a matrix that is stored and moved with the network but never trained."""

    matrix: Tensor

    def __init__(self, matrix: SquareMatrix) -> None:
        super().__init__()
        self.register_buffer("matrix", matrix)

    def forward(self, x: Rows) -> Rows:
        return F.linear(x, self.matrix)


def skip_connections(
    skip: SkipMatrix | Tensor, count: int, n: int, generator: torch.Generator, dtype: torch.dtype
) -> list[nn.Module]:
    """Make one skip connection for each of ``count`` transitions.

    A tensor is taken as it is: of shape (n, n) for every transition or (count, n, n), one for each.
    """
    if isinstance(skip, Shared) and not isinstance(skip.kind, Identity):
        skip = skip.matrix(n, generator)
    if isinstance(skip, Identity | Shared):
        return [nn.Identity() for _ in range(count)]
    if isinstance(skip, Tensor):
        require(
            tuple(skip.shape) in ((n, n), (count, n, n)),
            f"The skip tensor has shape {tuple(skip.shape)}, but must have ({n}, {n}) for one matrix in all "
            f"layers or ({count}, {n}, {n}) for one a layer.",
        )
        # Cloned, so that neither the caller nor another layer shares the buffer's memory.
        given = skip.detach().to(dtype=dtype, device="cpu").expand(count, n, n)
        return [FixedSkip(matrix.clone()) for matrix in given]
    require(
        isinstance(skip, SkipMatrix),
        f"skip is {skip!r}, but must be a tensor or a kind such as Identity() or Folded(distinct=32).",
    )
    return [FixedSkip(skip.matrix(n, generator).to(dtype)) for _ in range(count)]
