"""Gauss quadrature of a spectral measure, and what it proves about the mass left of a point.

A probe v sees the measure μ with ∫f dμ = vᵀf(A)v: a mass (vᵀu_i)² at every eigenvalue λ_i. m Lanczos steps know its
moments 0 … 2m. The eigenvalues θ of the tridiagonal T_m and the squared first components of its eigenvectors are the
m-point Gauss rule (Golub and Welsch, 1969).

The Gauss rule estimates the mass left of t but does not bound it. The rule with a node prescribed at t does
(Gauss–Radau; Golub, 1973): T_{m+1} with β_m known and its last diagonal entry chosen as t + β_m²/d, where d is the
last pivot of T_m − t, has the eigenvalue t, and the inequalities of Chebyshev, Markov and Stieltjes say

    Σ_{x_i < t} w_i  ≤  μ((−∞, t))  ≤  μ((−∞, t])  ≤  Σ_{x_i ≤ t} w_i

for *every* measure with these moments. The rule is itself such a measure, so no better limits follow from the
moments. The gap is the weight at t, 1/Σ_{j≤m} p_j(t)² (Krein and Nudelman, *The Markov Moment Problem*, 1977).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import require
from skiplab.linear_algebra.lanczos import Tridiagonal

# Above this size (T being 1) the last row is eliminated; see _prescribed. LAPACK keeps its digits beside even larger
# entries, other eigensolvers need not.
LARGE = 1e7
# How far rounding in float64 may move a node, relative to the operator's size, with room to spare.
ROUNDING = 1e-10
# Mass by which limits are widened besides: where t is an eigenvalue that a probe has found to 1e-15, its weight turns
# on the last digits of t. The largest shortfall in 1.9 million cases, many with atoms at t, was 3.4e-7.
SLACK = 1e-5
TINY = 1e-150


@dataclass(frozen=True)
class Gauss:
    """Nodes, ascending, and weights (*lead, k, m) of each probe's Gauss rule, with the nodes' residuals.

    ``residuals`` are ‖A y − θ y‖ of the Ritz vectors: some eigenvalue lies within residual of the node. A probe
    that finished early has nodes of weight 0 and residual 0 after its own, all equal to its largest.
    """

    nodes: Tensor
    weights: Tensor
    residuals: Tensor


def gauss(tridiagonal: Tridiagonal) -> Gauss:
    """Return the Gauss rule of every probe."""
    scale, diagonal, off_diagonal, _ = _in_units(tridiagonal)
    nodes, vectors = torch.linalg.eigh(_matrix(diagonal, off_diagonal))
    last = tridiagonal.lengths[..., None] - 1
    own = torch.arange(nodes.shape[-1], device=nodes.device) <= last
    # Entries beyond a probe's length were put right of all its nodes, so they sort after them.
    nodes = torch.where(own, nodes, nodes.gather(-1, last))
    weights = torch.where(own, vectors[..., 0, :].square(), 0)
    at_end = vectors.gather(-2, last[..., None].expand_as(vectors[..., :1, :]))[..., 0, :]
    residuals = torch.where(own, at_end.abs(), 0) * tridiagonal.last_off_diagonal[..., None]
    return Gauss(nodes * scale[..., None], weights / weights.sum(-1, keepdim=True), residuals)


def mass_limits(
    tridiagonal: Tridiagonal, t: Tensor | float, *, rounding: float = ROUNDING
) -> tuple[Tensor, Tensor]:
    """Return limits (low, high), each (*lead, k), of the spectral mass left of t that hold with certainty.

    low ≤ μ((−∞, t)) ≤ μ((−∞, t]) ≤ high: an atom at t itself is outside low and inside high. A node at
    distance δ from t counts for its side only with 1 − ``rounding``·‖T‖/δ of its weight, since rounding moves a node
    and mixes it with the one at t; this only widens the limits. Give the precision of the products where it is
    worse than float64, say 1e-6 for float32. t is a number or broadcasts to (*lead, k).
    """
    require(rounding >= 0, f"rounding is {rounding}; it is a distance relative to the operator, say 1e-10.")
    scale, diagonal, off_diagonal, last = _in_units(tridiagonal)
    point = _points(t, scale) / scale
    matrix, index = _prescribed(tridiagonal, diagonal, off_diagonal, last, point)
    nodes, vectors = torch.linalg.eigh(matrix)
    weights = vectors[..., 0, :].square()
    weights = weights / weights.sum(-1, keepdim=True)
    # How much of a node surely is on its side of t: none within the rounding, nearly all far away.
    distance = nodes - point[..., None]
    near = rounding * point.abs().clamp_min(1)[..., None]
    surely = 1 - (near / distance.abs().clamp_min(TINY)).clamp_max(1)
    # The node at t is known by its number, however the eigensolver rounded it.
    number = torch.arange(nodes.shape[-1], device=nodes.device) - index[..., None]
    number = torch.where(tridiagonal.finished[..., None], distance.sign(), number)
    low = torch.where((number < 0) & (distance < 0), weights * surely, 0).sum(-1)
    high = 1 - torch.where((number > 0) & (distance > 0), weights * surely, 0).sum(-1)
    slack = torch.where(tridiagonal.finished, 0, SLACK)
    return (low - slack).clamp(0, 1), (high + slack).clamp(0, 1)


def _in_units(tridiagonal: Tridiagonal) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Divide by the matrix's size, so that no tolerance depends on the units of the loss.

    Unused diagonal entries become 4, right of every eigenvalue (‖T‖ ≤ 3), with weight 0.
    """
    scale = torch.where(tridiagonal.scale > 0, tridiagonal.scale, 1)
    beyond = torch.arange(tridiagonal.steps, device=scale.device) >= tridiagonal.lengths[..., None]
    diagonal = torch.where(beyond, 4, tridiagonal.diagonal / scale[..., None])
    off_diagonal = torch.where(beyond[..., 1:], 0, tridiagonal.off_diagonal / scale[..., None])
    return scale, diagonal, off_diagonal, tridiagonal.last_off_diagonal / scale


def _prescribed(
    tridiagonal: Tridiagonal, diagonal: Tensor, off_diagonal: Tensor, last: Tensor, point: Tensor
) -> tuple[Tensor, Tensor]:
    """The matrix of order m+1 with an eigenvalue at the point, and that eigenvalue's number from the left.

    The number of negative pivots is the number of eigenvalues of T_m left of the point (Sylvester), which interlace
    with those wanted. Where the point is nearly an eigenvalue of T_m the new entry β²/d is huge and could swamp
    the rest: then the last row is eliminated, which changes α_m to α_m − d and all else by (d/β²)² ≤ 1e-14. A
    finished probe keeps T_m, whose rule is the measure.
    """
    pivot = diagonal[..., 0] - point
    negative = torch.zeros_like(tridiagonal.lengths)
    for step in range(1, diagonal.shape[-1]):
        pivot = torch.where(pivot.abs() < TINY, -TINY, pivot)
        negative += pivot < 0
        pivot = diagonal[..., step] - point - off_diagonal[..., step - 1].square() / pivot
    eliminated = pivot.abs() * LARGE < last.square()
    exact = tridiagonal.finished
    index = torch.where(eliminated, negative, negative + (pivot < 0))
    entry = point + last.square() / torch.where(pivot.abs() < TINY, -TINY, pivot)
    # What is not needed goes far to the right, with weight 0.
    unused = 4 + 2 * point.abs()
    entry = torch.where(exact | eliminated, unused, entry)
    coupling = torch.where(exact | eliminated, 0, last)
    inner = diagonal.clone()
    inner[..., -1] = torch.where(eliminated & ~exact, diagonal[..., -1] - pivot, diagonal[..., -1])
    return _matrix(
        torch.cat([inner, entry[..., None]], -1), torch.cat([off_diagonal, coupling[..., None]], -1)
    ), index


def _matrix(diagonal: Tensor, off_diagonal: Tensor) -> Tensor:
    beside = torch.diag_embed(off_diagonal, 1) + torch.diag_embed(off_diagonal, -1)
    return torch.diag_embed(diagonal) + (beside if off_diagonal.shape[-1] else 0)


def _points(t: Tensor | float, like: Tensor) -> Tensor:
    points = torch.as_tensor(t, dtype=torch.float64, device=like.device)
    require(bool(points.isfinite().all()), "t is not finite; give a real threshold.")
    return points.broadcast_to(like.shape)
