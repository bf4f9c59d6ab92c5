"""Linear networks of orhan2017 eqs 5–7: no biases, no nonlinearity, one matrix a layer.

Layer sizes may differ; the identity of a skip is then rectangular, which pads with zeros or drops the last
units (section 2.3). ``layers[k]`` carries x_{k+1} to x_{k+2}, x_1 being the input.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.expected import rows
from skiplab.architectures.initialisers import GLOROT, Initialiser, undrawn
from skiplab.checks import require, whole_numbers
from skiplab.shapes import Rows


class LinearLayer(nn.Module):
    """(W + c I) x, and whatever arrives from earlier layers."""

    def __init__(self, inputs: int, outputs: int, identities: int, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear = undrawn(nn.Linear, inputs, outputs, bias=False, dtype=dtype)
        self.identities = identities

    def forward(self, x: Rows, earlier: Rows | None = None) -> Rows:
        following = self.linear(x)
        if self.identities:
            # A negative padding drops units, so this is the rectangular identity in both directions.
            padding = self.linear.out_features - self.linear.in_features
            following = following + self.identities * (F.pad(x, (0, padding)) if padding else x)
        return following if earlier is None else following + earlier


class PlainLinearNet(nn.Module):
    """No skips, orhan2017 eq 5: x_L = W_{L−1} W_{L−2} … W_1 x_1.

    ``sizes`` are the numbers of units in x_1 … x_L, input and output included.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        generator: torch.Generator,
        init: Initialiser = GLOROT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        require(len(sizes) >= 2, f"sizes are {tuple(sizes)}, but need at least an input and an output size.")
        for size in sizes:
            whole_numbers(size=size)
        self.sizes = tuple(sizes)
        pairs = enumerate(zip(self.sizes, self.sizes[1:], strict=False), start=1)
        self.layers = nn.ModuleList(LinearLayer(*pair, self.identities(ell), dtype) for ell, pair in pairs)
        self.block_names = tuple(f"layers.{k}" for k in range(len(self.layers)))
        init.apply(self, generator)

    @staticmethod
    def identities(ell: int) -> int:
        """Return how many identities the equation adds to W_l."""
        return 0

    def forward(self, x: Rows) -> Rows:
        x = rows(x, self.sizes[0])
        for layer in self.layers:
            x = layer(x)
        return x

    def matrix(self) -> Tensor:
        """Return the matrix of the whole map from x_1 to x_L."""
        basis = torch.eye(self.sizes[0]).to(next(self.parameters()))
        return self(basis).T


class ResidualLinearNet(PlainLinearNet):
    """Identity skips between adjacent layers, orhan2017 eq 6: x_L = (W_{L−1} + I) … (W_1 + I) x_1."""

    @staticmethod
    def identities(ell: int) -> int:
        return 1


class HyperResidualLinearNet(PlainLinearNet):
    """The paper's hyper-residual map, orhan2017 eq 7: x_L = (W_{L−1} + (L−1) I) … (W_1 + I) x_1.

    It puts l x_l where skips from all layers would give x_l + … + x_1; see DenseResidualLinearNet.
    """

    @staticmethod
    def identities(ell: int) -> int:
        return ell


class DenseResidualLinearNet(PlainLinearNet):
    """Skips from every layer to all above it, which eq 7 simplifies: x_{l+1} = W_l x_l + x_l + … + x_1."""

    def __init__(
        self,
        sizes: Sequence[int],
        *,
        generator: torch.Generator,
        init: Initialiser = GLOROT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__(sizes, generator=generator, init=init, dtype=dtype)
        require(
            len(set(sizes)) == 1,
            f"sizes are {tuple(sizes)}, but skips from all layers need equal ones; "
            f"make every size {max(sizes)}.",
        )

    @staticmethod
    def identities(ell: int) -> int:
        return 1

    def forward(self, x: Rows) -> Rows:
        x = rows(x, self.sizes[0])
        earlier: Rows | None = None
        for layer in self.layers:
            following = layer(x, earlier)
            earlier = x if earlier is None else earlier + x
            x = following
        return x
