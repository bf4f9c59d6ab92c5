"""The density of eigenvalues on a grid, smoothed by a Gaussian, from the nodes and weights of many probes.

φ_σ(x) = 1/k Σ_probes Σ_i w_i N(x; θ_i, σ²) (Lin, Saad and Yang, "Approximating spectral densities of large matrices",
2016, section 3). The standard error is over probes and says nothing of the smoothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import at_least, require
from skiplab.linear_algebra.operators import stderr

WIDTH_SHARE = 0.01  # chosen by us: features a hundredth of the spectrum apart stay apart
KERNELS = 1 << 22  # numbers that kernels take at a time
MARGIN = 4.0  # widths beyond the outermost nodes, which keeps all but 6e-5 of a kernel's mass on the grid


@dataclass(frozen=True)
class Density:
    """Mean density over probes with its standard error, (*lead, points), on a grid (points,), and the width used."""

    grid: Tensor
    density: Tensor
    stderr: Tensor
    width: float


def spectral_density(
    nodes: Tensor,
    weights: Tensor,
    *,
    grid: Tensor | None = None,
    points: int = 1000,
    width: float | None = None,
) -> Density:
    """Smooth the quadrature rules (*lead, k, m) and average them over the k probes.

    ``width`` σ is by default a hundredth of the range of all nodes; ``grid`` by default runs evenly from 4σ below the
    least node to 4σ above the greatest and is common to all leading indices, so that densities can be compared.
    """
    at_least("points", points, 2)
    # Unused nodes of finished probes repeat their largest, so they do not stretch the range.
    low, high = float(nodes.min()), float(nodes.max())
    if width is None:
        size = max(abs(low), abs(high))
        width = WIDTH_SHARE * ((high - low) or size or 1.0)
    require(width > 0 and math.isfinite(width), f"width is {width}; give a positive number.")
    if grid is None:
        grid = torch.linspace(
            low - MARGIN * width, high + MARGIN * width, points, dtype=torch.float64, device=nodes.device
        )
    require(grid.ndim == 1, f"grid has shape {tuple(grid.shape)}; give one axis of points.")
    grid = grid.to(nodes)
    samples = nodes.new_zeros((*nodes.shape[:-1], len(grid)))
    # Some nodes of every probe at a time: all kernels at once would take m times the memory of the answer, and one
    # at a time as many small steps as there are nodes.
    some = max(1, KERNELS // max(samples.numel(), 1))
    for node, weight in zip(nodes.split(some, -1), weights.split(some, -1), strict=True):
        distance = (grid[:, None] - node[..., None, :]).div_(width)
        kernels = distance.square_().mul_(-0.5).exp_()
        samples += (kernels @ weight.to(kernels)[..., None])[..., 0]
    samples /= width * math.sqrt(2 * math.pi)
    return Density(grid, samples.mean(-2), stderr(samples, -2), width)
