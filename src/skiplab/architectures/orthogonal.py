"""Orthogonal first weights, and the mirrored blocks (W, −W) of balduzzi2017 section 5.

A product of orthogonal matrices is orthogonal, so a linear network of any depth that starts so neither shrinks
nor stretches anything (Saxe et al., 2014). For a kernel of size A × B × 3 × 3 the paper sets all entries to zero
and the centre to a random W, A × B, with orthonormal columns, which needs A ≥ B. Where A < B no columns can be
orthonormal; we then take orthonormal rows, so that the layer projects onto A directions (ours).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from skiplab.architectures.initialisers import Initialiser, standard_normal
from skiplab.checks import Refused, require

AnyLayer = TypeVar("AnyLayer", bound=nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d)


def orthonormal(rows: int, columns: int, generator: torch.Generator) -> Tensor:
    """Draw a float64 matrix uniformly among those with orthonormal columns, or rows if it has fewer of them."""
    drawn = standard_normal((max(rows, columns), min(rows, columns)), generator)
    q, r = torch.linalg.qr(drawn)
    # LAPACK's signs depend on the entries; fixing R's diagonal to be positive makes Q uniform.
    q = q * torch.where(r.diagonal() < 0, -1.0, 1.0)
    return q if rows >= columns else q.T.contiguous()


@dataclass(frozen=True)
class OrthogonalWeights(Initialiser):
    """Linear layers start as ``gain`` times a random matrix with orthonormal columns, or rows if A < B."""

    gain: float = 1.0

    def __post_init__(self) -> None:
        require(0 <= self.gain < math.inf, f"gain is {self.gain}, but must be a finite number of at least 0.")

    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the root mean square of the entries: unit columns of A entries, or unit rows of B."""
        return self.gain / math.sqrt(max(fan_in, fan_out))

    def weights(self, shape: Sequence[int], generator: torch.Generator, groups: int = 1) -> Tensor:
        """Draw float64 weights of a layer whose weights have this shape."""
        require(
            len(shape) == 2,
            f"Weights of shape {tuple(shape)} are a convolution's; start it with DeltaOrthogonal(), "
            "which also serves Linear layers.",
        )
        return self.gain * orthonormal(shape[0], shape[1], generator)

    def _draw(self, layer: nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d, generator: torch.Generator) -> None:
        require_shape(layer)
        groups = 1 if isinstance(layer, nn.Linear) else layer.groups
        layer.weight.copy_(self.weights(layer.weight.shape, generator, groups))
        if layer.bias is not None:
            layer.bias.zero_()


@dataclass(frozen=True)
class DeltaOrthogonal(OrthogonalWeights):
    """Kernels are zero but for an orthonormal centre tap, K[:, :, centre] = gain · W; Linear layers as above.

    At stride 1 and padding (k − 1)/2 each pixel is then multiplied by W, an isometry if A ≥ B. At stride s it
    keeps the pixels (s·i, s·j) and drops the others, so norms fall; a smaller padding drops the border. Each group
    of a grouped convolution draws its own W.
    """

    def weights(self, shape: Sequence[int], generator: torch.Generator, groups: int = 1) -> Tensor:
        """Draw float64 weights of a Linear layer or a kernel of odd sizes."""
        if len(shape) == 2:
            return super().weights(shape, generator)
        window = tuple(shape[2:])
        require(
            all(size % 2 == 1 for size in window),
            f"A kernel of {' × '.join(map(str, window))} has no centre tap; use odd sizes, or another start.",
        )
        kernel = torch.zeros(tuple(shape), dtype=torch.float64)
        taps = [orthonormal(shape[0] // groups, shape[1], generator) for _ in range(groups)]
        # The middle of the flattened window is its centre, in any number of dimensions.
        kernel.flatten(2)[:, :, math.prod(window) // 2] = self.gain * torch.cat(taps)
        return kernel


def mirrored(layer: AnyLayer) -> AnyLayer:
    """Return a copy that reads twice the units with weights (W, −W): it does to CReLU(x) what W does to x.

    (W  −W) (ρ(x); ρ(−x)) = W ρ(x) − W ρ(−x) = W x, balduzzi2017 section 5. The bias, the mode and all else stay.
    """
    require_shape(layer)
    groups = 1 if isinstance(layer, nn.Linear) else layer.groups
    require(
        groups == 1,
        f"{layer} has {groups} groups, so halves of its input cannot be told apart; use groups=1.",
    )
    wide = copy.deepcopy(layer)
    if isinstance(wide, nn.Linear):
        wide.in_features *= 2
    else:
        wide.in_channels *= 2
    weight = layer.weight.detach()
    wide.weight = nn.Parameter(mirror(weight), requires_grad=layer.weight.requires_grad)
    return wide


def mirror(weight: Tensor) -> Tensor:
    """Put −W beside W along the axis of inputs."""
    return torch.cat((weight, -weight), dim=1)


def require_shape(layer: nn.Module) -> None:
    """Refuse a lazy layer that has not seen its first batch."""
    if isinstance(layer.weight, nn.UninitializedParameter):
        raise Refused(f"{layer} has no shape yet; pass one batch through the module before initialising it.")
