"""Points where a layer is singular, built exactly, and where the loss is then flat (orhan2018, figure 1).

The network is a fully connected layer with its incoming and outgoing weights,

    plain      y = W h,            h = φ(J x)
    skip       y = W h + h,        h = φ(J x) + x         (identity skips around both)

with φ the ReLU, n inputs, units and outputs, and the loss L = E‖t − y‖²/n over fixed samples. The inputs are
the responses of a rectified layer, so x ≥ 0. Four ways in which the plain layer is singular:

    zero incoming       J_i = 0: unit i is silent, the weights W_·i mean nothing
    zero outgoing       W_·i = 0: nobody listens to unit i, the weights J_i mean nothing
    overlap             J_a = J_b: only W_·a + W_·b matters
    linear dependence   J_c = αJ_a + βJ_b with positive J_a, J_b: on x ≥ 0 all three units are linear, so
                        h_c = αh_a + βh_b, and only W_·a + αW_·c and W_·b + βW_·c matter

Each predicts n null directions in one block of the weights (W; J for zero outgoing). Along them the loss is
constant, so dᵀHd = 0, and the Gauss–Newton matrix of the block, whose zeros are those of ∂y/∂W or ∂y/∂J, has
n zeros more. The full Hessian H keeps terms in the error: H d = 0 is *not* predicted off an optimum.

Derivatives are exact (torch.func in float64); with relu′(0) = 0 they take one side of the kink at J_i = 0, where
the predicted directions do not move J.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.func import jacrev

from skiplab.checks import at_least, one_of

KINDS = ("zero incoming", "zero outgoing", "overlap", "linear dependence")


@dataclass(frozen=True)
class SingularLayer:
    """A layer at (or beside) a singular point, with its samples and predicted null directions.

    ``directions`` is (n, 2, n, n): orthonormal directions in the pair (J, W).
    """

    kind: str
    J: Tensor
    W: Tensor
    inputs: Tensor
    targets: Tensor
    directions: Tensor
    skip: bool = False

    @property
    def units(self) -> int:
        """Number n of inputs, units and outputs."""
        return self.J.shape[0]

    @property
    def weights(self) -> Tensor:
        """All weights as one tensor (2, n, n): J, then W."""
        return torch.stack([self.J, self.W])

    @property
    def block(self) -> int:
        """The block that the null directions lie in: 0 for J, 1 for W."""
        return 0 if self.kind == "zero outgoing" else 1

    def responses(self, weights: Tensor | None = None) -> Tensor:
        """The units' responses h, (samples, n)."""
        incoming = self.J if weights is None else weights[0]
        active = torch.relu(self.inputs @ incoming.T)
        return active + self.inputs if self.skip else active

    def outputs(self, weights: Tensor) -> Tensor:
        """The network's outputs y, (samples, n)."""
        h = self.responses(weights)
        y = h @ weights[1].T
        return y + h if self.skip else y

    def loss(self, weights: Tensor) -> Tensor:
        """The mean squared error over samples and outputs."""
        return (self.targets - self.outputs(weights)).square().mean()


def singular_layer(
    kind: str,
    units: int,
    samples: int,
    generator: torch.Generator,
    *,
    beside: bool = False,
    skip: bool = False,
) -> SingularLayer:
    """Draw a layer with the singularity of that kind; with ``beside`` the same layer without it.

    ``beside`` replaces only the weights that make the point singular by random ones, so what it shows is the
    layer's ordinary behaviour along the same directions.
    """
    one_of("kind", kind, KINDS)
    at_least("units", units, 3)
    at_least("samples", samples, 1)
    normal: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    inputs = torch.randn(samples, units, **normal).abs()
    targets = torch.randn(samples, units, **normal)
    J, W, spare = torch.randn(3, units, units, **normal) / units**0.5
    mixing = 0.5 + torch.rand(2, **normal)
    # x ≥ 0: a positive sum of weights makes a unit respond to some inputs at least.
    J, spare = (weights * weights.sum(1, keepdim=True).sign() for weights in (J, spare))
    if kind == "linear dependence":
        J[:3], spare[:3] = J[:3].abs(), spare[:3].abs()
    outgoing = torch.zeros(units, 2, units, units, dtype=torch.float64)
    each = torch.arange(units)
    match kind:
        case "zero incoming":
            J[0] = spare[0] if beside else 0
            outgoing[each, 1, each, 0] = 1
        case "zero outgoing":
            W[:, 0] = spare[0] if beside else 0
            outgoing[each, 0, 0, each] = 1
        case "overlap":
            J[1] = spare[1] if beside else J[0]
            outgoing[each, 1, each, 0], outgoing[each, 1, each, 1] = 1, -1
        case _:
            J[2] = spare[2] if beside else mixing @ J[:2]
            outgoing[each, 1, each, 0], outgoing[each, 1, each, 1] = mixing[0], mixing[1]
            outgoing[each, 1, each, 2] = -1
    directions = outgoing / outgoing.flatten(1).norm(dim=1)[:, None, None, None]
    return SingularLayer(kind, J, W, inputs, targets, directions, skip)


def loss_along(layer: SingularLayer, direction: Tensor, steps: Tensor) -> Tensor:
    """L(θ + t·d) for every step t."""
    return torch.stack([layer.loss(layer.weights + step * direction) for step in steps])


@dataclass(frozen=True)
class Curvature:
    """What the exact derivatives say at a point.

    ``along`` is dᵀHd for every predicted direction, ``pushed`` ‖Hd‖, ``scale`` the largest |eigenvalue| of H,
    ``block_spectrum`` the eigenvalues of the Gauss–Newton matrix of the directions' block and ``spectrum``
    those of the whole, descending; Gauss–Newton is 2/(samples·n)·Σ (∂y/∂θ)ᵀ(∂y/∂θ).
    """

    along: Tensor
    pushed: Tensor
    scale: float
    block_spectrum: Tensor
    spectrum: Tensor


def curvature(layer: SingularLayer) -> Curvature:
    """Compute the exact Hessian and Gauss–Newton spectra of a layer."""
    weights = layer.weights
    size = weights.numel()
    H = jacrev(jacrev(layer.loss))(weights).reshape(size, size)
    directions = layer.directions.flatten(1)
    moved = directions @ H
    # Singular values of the Jacobian, squared afterwards: a zero is then told from a small number far better.
    jacobian = jacrev(layer.outputs)(weights).reshape(-1, 2, size // 2)
    factor = 2 / len(jacobian)
    whole = torch.linalg.svdvals(jacobian.flatten(1)).square() * factor
    part = torch.linalg.svdvals(jacobian[:, layer.block]).square() * factor
    along = (moved * directions).sum(1)
    return Curvature(along, moved.norm(dim=1), float(torch.linalg.eigvalsh(H).abs().max()), part, whole)


def zeros(spectrum: Tensor, rounding: float = 1e-20) -> int:
    """Count the eigenvalues that are 0 but for rounding, relative to the largest.

    The default suits squared singular values, whose rounding is that of float64 squared.
    """
    return int((spectrum <= rounding * spectrum.max()).sum())
