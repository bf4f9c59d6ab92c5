"""Monte Carlo of the trivial case (yu2019, figure 11), by one row of Θ per draw.

All rows of Θ have the same law, so that E[σ^(l)] is the probability for the first. A row wᵀ goes through the layers
as wᵀ ← wᵀ(K^(m))ᵀ S^(m) and meets each A once: given w, wᵀAᵀ is Gaussian with independent entries of deviation
‖w‖σ_A. So n numbers per layer stand for n² with exactly the same law, and 100,000 draws take a fraction of a second.
A draw of whole matrices, as in the paper, has n rows, which depend on each other: its share has the same mean and
less noise.

Given w, V_1 and the sum over the other V are independent, which leaves φ(|w_1| / ‖w_2…n‖): ``integrated_share`` is
the mean of that, with less noise than counting, and σ_V does not occur in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from skiplab.checks import drawn_from, one_of, whole_numbers
from skiplab.theory.dominant_flow.trivial_case import TrivialCase

KINDS = ("residual", "plain")
CHUNK = (
    10_000  # rows at once, which stay in a core's cache; a part of what a seed gives, so not to be changed
)


class Simulated(NamedTuple):
    """A mean over draws and its standard error."""

    value: float
    stderr: float


def simulated_share(
    case: TrivialCase,
    kind: str,
    *,
    draws: int = 100_000,
    generator: torch.Generator,
    open_path: bool = False,
) -> Simulated:
    """E[σ^(l)] as the share of draws with |Θ_11| > |Σ_{j≠1} Θ_1j|; plain networks have K = A in place of I + ε A.

    A row of zeros, all of whose gates are shut, has no dominant flow. With ``open_path`` the unit's own gates are
    open, which is the condition Z of eqs 9 to 11.
    """
    hits = 0
    for w in _rows(case, kind, draws, generator, open_path):
        theta = w * (case.sigma_v * _normal(w.shape, generator))
        hits += int((theta[:, 0].abs() > theta[:, 1:].sum(1).abs()).sum())
    share = hits / draws
    return Simulated(share, math.sqrt(share * (1 - share) / draws))


def integrated_share(
    case: TrivialCase, kind: str, *, draws: int = 100_000, generator: torch.Generator
) -> Simulated:
    """E[σ^(l)] as the mean over draws of its expectation given the kernels and gates."""
    total, squares = 0.0, 0.0
    for w in _rows(case, kind, draws, generator):
        given = 2 / math.pi * torch.atan2(w[:, 0].abs(), w[:, 1:].norm(dim=1))  # 0 for a row of zeros
        total += float(given.sum())
        squares += float(given.square().sum())
    mean = total / draws
    return Simulated(mean, math.sqrt(max(squares / draws - mean**2, 0.0) / draws))


def _rows(
    case: TrivialCase, kind: str, draws: int, generator: torch.Generator, open_path: bool = False
) -> Iterator[Tensor]:
    """First rows of ∏ (K^(m))ᵀ S^(m), (some draws, n), until there are ``draws`` of them."""
    one_of("kind", kind, KINDS)
    whole_numbers(draws=draws)
    drawn_from(generator)
    carried, scale = (1.0, case.epsilon * case.sigma_a) if kind == "residual" else (0.0, case.sigma_a)
    for first in range(0, draws, CHUNK):
        shape = (min(CHUNK, draws - first), case.n)
        w = torch.zeros(shape, dtype=torch.float64, device=generator.device)
        w[:, 0] = 1.0
        for _ in range(case.steps):
            noise = _normal(shape, generator).mul_(scale * w.norm(dim=1, keepdim=True))
            gates = torch.rand(shape, generator=generator, device=generator.device) < case.p
            gates[:, 0] |= open_path
            w = noise.add_(w, alpha=carried).mul_(gates)
        yield w


def _normal(shape: tuple[int, ...], generator: torch.Generator) -> Tensor:
    # Drawn in float32, four times as fast on a CPU; what follows is float64, where small numbers do not vanish.
    return torch.randn(shape, generator=generator, device=generator.device).double()
