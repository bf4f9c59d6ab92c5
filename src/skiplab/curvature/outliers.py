"""The spectrum in two parts: a few outliers known exactly, and the rest that probes see.

With the d outliers' eigenvectors in Q, probes u = (I − QQᵀ)v and the operator (I − QQᵀ)H(I − QQᵀ) see only the other
P − d eigenvalues; a fraction or moment of all is Σ over the outliers / P + (P − d)/P · (that of the rest).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab import linear_algebra as la
from skiplab.checks import Refused, require
from skiplab.curvature.products import HessianProduct


@dataclass(frozen=True)
class Rest:
    """The operator without the outliers, unit probes (E, k, P) for it, and the outliers' ``values`` (E, d).

    ``rounding`` is how far its products may move a node, relative to the whole operator.
    """

    product: la.Product
    start: Tensor
    values: Tensor
    dimension: int
    rounding: float

    @staticmethod
    def all_of(product: HessianProduct, start: Tensor, rounding: float) -> Rest:
        """Everything, without outliers."""
        return Rest(
            product,
            start,
            start.new_zeros((product.size, 0), dtype=torch.float64),
            product.dimension,
            rounding,
        )

    @staticmethod
    def without_outliers(
        product: HessianProduct, start: Tensor, rounding: float, count: int, generator: torch.Generator
    ) -> Rest:
        """Take out the ``count`` eigenvalues of largest |λ|, found to residuals of ten times the rounding."""
        require(
            count < product.dimension,
            f"deflate is {count}, but the network has {product.dimension} parameters; take out fewer.",
        )
        found = la.extreme_eigenvalues(
            product,
            product.dimension,
            count,
            generator,
            which="magnitude",
            tolerance=10 * rounding,
            lead=(product.size,),
            vectors=True,
            dtype=product.dtype,
            device=product.device,
        )
        if not bool(found.converged.all()):
            raise Refused(
                f"deflate is {count}, but {found.steps} steps did not find as many outliers; take out fewer."
            )
        assert found.vectors is not None
        inside = la.project_out(start.double(), la.orthonormal(found.vectors))
        probes = inside / torch.linalg.vector_norm(inside, dim=-1, keepdim=True)
        without = la.deflated(product, found.vectors)
        return Rest(without, probes.to(start.dtype), found.values, product.dimension, rounding)

    @property
    def share(self) -> float:
        """The share of eigenvalues that the probes see."""
        return 1 - self.values.shape[-1] / self.dimension

    def largest(self, rule: la.Gauss) -> Tensor:
        """The largest |λ| of all, (E,)."""
        seen = rule.nodes.abs().amax((-1, -2))
        return torch.maximum(seen, self.values.abs().amax(-1)) if self.values.shape[-1] else seen

    def limits(self, tridiagonal: la.Tridiagonal, t: Tensor) -> list[tuple[Tensor, Tensor]]:
        """Limits (E, k) of the mass of all eigenvalues left of −t and left of t, for t (E,)."""
        rounding = self.rounding
        if self.values.shape[-1]:
            # Products round by the size of the whole operator, limits by that of the rest.
            whole = self.values.abs().amax(-1, keepdim=True)
            rounding *= max(1.0, float((whole / tridiagonal.scale.clamp_min(1e-300)).max()))
        both = []
        for point in (-t, t):
            known = (self.values < point[:, None]).double().sum(-1, keepdim=True) / self.dimension
            places = point[:, None].expand(tridiagonal.diagonal.shape[:-1])
            low, high = la.mass_limits(tridiagonal, places, rounding=rounding)
            both.append((known + self.share * low, known + self.share * high))
        return both

    def joined(self, rule: la.Gauss) -> tuple[Tensor, Tensor]:
        """Nodes and weights (E, k, d + m) of all eigenvalues, outliers first."""
        outliers = self.values[:, None].expand(*rule.nodes.shape[:-1], -1)
        known = torch.full_like(outliers, 1 / self.dimension)
        nodes = torch.cat([outliers.to(rule.nodes), rule.nodes], -1)
        return nodes, torch.cat([known.to(rule.weights), self.share * rule.weights], -1)
