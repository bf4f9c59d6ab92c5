"""Fully connected networks of orhan2017: plain, residual, hyper-residual, path-residual (section 2.4).

Layer 1 is x_1 = f(W_0 x_0 + b_1), without a skip from the input x_0; the equation of each class carries
x_l to x_{l+1} for l = 1 … depth − 1, and the output is linear in x_depth. ``hidden[k]`` returns
x_{k+1}, so a forward hook there sees a layer's activities. Weights are drawn before skip matrices: with
equal seeds all four have equal weights.
"""

from __future__ import annotations

from typing import TypedDict, Unpack

import torch
from torch import nn

from skiplab.architectures.expected import rows
from skiplab.architectures.initialisers import GLOROT, Initialiser, undrawn
from skiplab.architectures.skip_matrices import IDENTITY, Folded, SkipMatrix, skip_connections
from skiplab.checks import one_of, require, whole_numbers
from skiplab.shapes import Rows

ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "tanh": nn.Tanh, "linear": nn.Identity}


class Common(TypedDict, total=False):
    """Settings that all four networks take; FullyConnectedNet explains them."""

    init: Initialiser
    activation: str
    batch_norm_at: int | None


class PlainLayer(nn.Module):
    """One hidden layer, f(W x + b), with batch normalisation of W x + b where it is asked for."""

    def __init__(self, inputs: int, width: int, activation: str, normalise: bool, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear = undrawn(nn.Linear, inputs, width, dtype=dtype)
        self.norm: nn.Module = nn.BatchNorm1d(width, dtype=dtype) if normalise else nn.Identity()
        self.activation = ACTIVATIONS[activation]()

    def forward(self, x: Rows) -> Rows:
        return self.activation(self.norm(self.linear(x)))


class SkipLayer(PlainLayer):
    """One hidden layer with a skip, f(W x + b) + Q x, and whatever arrives from earlier layers."""

    def __init__(self, inputs: int, width: int, activation: str, normalise: bool, dtype: torch.dtype) -> None:
        require(
            inputs == width,
            f"inputs is {inputs} and width {width}, but a skip from the input needs equal sizes; change one.",
        )
        super().__init__(inputs, width, activation, normalise, dtype)
        self.skip: nn.Module = nn.Identity()

    def forward(self, x: Rows, earlier: Rows | None = None) -> Rows:
        following = super().forward(x) + self.skip(x)
        return following if earlier is None else following + earlier


class FullyConnectedNet(nn.Module):
    """What the four networks share: hidden layers of equal width and a linear output.

    ``batch_norm_at`` puts one batch normalisation on the pre-activations of that hidden layer, counted from
    1; depth // 2 is the middle (which side of the activation is ours, the paper does not say).
    """

    layer: type[PlainLayer] = PlainLayer
    first: type[PlainLayer] = PlainLayer  # the layer that sees the input, whose size is another as a rule

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        *,
        generator: torch.Generator,
        init: Initialiser = GLOROT,
        activation: str = "relu",
        batch_norm_at: int | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        whole_numbers(inputs=inputs, width=width, depth=depth, outputs=outputs)
        one_of("activation", activation, ACTIVATIONS)
        require(
            batch_norm_at is None or 1 <= batch_norm_at <= depth,
            f"batch_norm_at is {batch_norm_at}, but must be a hidden layer from 1 to {depth}, or None.",
        )
        self.inputs, self.width, self.depth, self.outputs = inputs, width, depth, outputs
        self.batch_norm_at = batch_norm_at
        self.block_names = tuple(f"hidden.{k}" for k in range(depth))
        self.hidden = nn.ModuleList()
        for number in range(1, depth + 1):
            kind, source = (self.first, inputs) if number == 1 else (self.layer, width)
            self.hidden.append(kind(source, width, activation, number == batch_norm_at, dtype))
        self.output = undrawn(nn.Linear, width, outputs, dtype=dtype)
        init.apply(self, generator)

    def checked(self, x: Rows) -> Rows:
        """Return the input, or refuse it if its shape is wrong."""
        return rows(x, self.inputs, flat=self.batch_norm_at is not None)

    def forward(self, x: Rows) -> Rows:
        x = self.checked(x)
        for layer in self.hidden:
            x = layer(x)
        return self.output(x)


class PlainNet(FullyConnectedNet):
    """No skips, orhan2017 eq 24: x_{l+1} = f(W_l x_l + b_{l+1})."""


class ResidualNet(FullyConnectedNet):
    """Skips between adjacent layers, orhan2017 eq 25: x_{l+1} = f(W_l x_l + b_{l+1}) + Q_l x_l."""

    layer = SkipLayer

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        *,
        generator: torch.Generator,
        skip: SkipMatrix | torch.Tensor = IDENTITY,
        dtype: torch.dtype = torch.float32,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(inputs, width, depth, outputs, generator=generator, dtype=dtype, **common)
        connections = skip_connections(skip, depth - 1, width, generator, dtype)
        for layer, connection in zip(self.hidden[1:], connections, strict=True):
            layer.skip = connection


class InputResidualNet(ResidualNet):
    """Skips between adjacent layers and from the input, of the layers' size: x_1 = f(W_0 x_0 + b_1) + x_0.

    In orhan2017's eqs 2–7 and 25 x_1 is the input, so that this is what they say where all layers are of one size.
    """

    first = SkipLayer


class HyperResidualNet(ResidualNet):
    """Skips from every layer to all above it, orhan2017 eq 26, with a separate matrix for the adjacent layer.

    x_{l+1} = f(W_l x_l + b_{l+1}) + Q_l x_l + 1/(l − 1) · [Q′_{l−1} x_{l−1} + … + Q′_1 x_1], where the
    bracket is empty at l = 1; without ``normalised`` the bracket is not divided. ``skip`` is Q_l; ``far_skip`` is
    Q′_k, one matrix for each source layer k = 1 … depth − 2, by default an orthogonal matrix folded twice (section
    2.4.3). The sum in the bracket is carried along, so a pass costs one product a layer, not one a pair of layers.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        *,
        generator: torch.Generator,
        skip: SkipMatrix | torch.Tensor = IDENTITY,
        far_skip: SkipMatrix | torch.Tensor | None = None,
        normalised: bool = True,
        dtype: torch.dtype = torch.float32,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(inputs, width, depth, outputs, generator=generator, skip=skip, dtype=dtype, **common)
        if far_skip is None:
            require(
                width % 4 == 0,
                f"width is {width}, but folding far skips twice needs a multiple of 4; "
                f"change it or give far_skip.",
            )
            far_skip = Folded(distinct=width // 4)
        self.normalised = normalised
        self.far = nn.ModuleList(skip_connections(far_skip, max(depth - 2, 0), width, generator, dtype))

    def forward(self, x: Rows) -> Rows:
        x = self.hidden[0](self.checked(x))
        bracket: Rows | None = None
        for ell, layer in enumerate(self.hidden[1:], start=1):
            earlier = bracket / (ell - 1) if bracket is not None and self.normalised else bracket
            following = layer(x, earlier)
            if ell <= len(self.far):
                term = self.far[ell - 1](x)
                bracket = term if bracket is None else bracket + term
            x = following
        return self.output(x)


class PathSkip(nn.Module):
    """A multiple of 1 x, 1 being the matrix of ones, as a sum instead of a product."""

    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, x: Rows) -> Rows:
        return (self.scale * x.sum(-1, keepdim=True)).expand_as(x)


class PathResidualNet(FullyConnectedNet):
    """A skip beside every connection, after orhan2017 eq 4: x_{l+1} = f(W_l x_l + b_{l+1}) + c · 1 x_l.

    1 is the matrix of ones. ``skip_scale`` is c, by default 1/width (ours), which gives the skip norm 1 like
    the identity's; with c = 1, as printed for width 2, activities grow width-fold a layer.
    """

    layer = SkipLayer

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        *,
        generator: torch.Generator,
        skip_scale: float | None = None,
        dtype: torch.dtype = torch.float32,
        **common: Unpack[Common],
    ) -> None:
        super().__init__(inputs, width, depth, outputs, generator=generator, dtype=dtype, **common)
        for layer in self.hidden[1:]:
            layer.skip = PathSkip(1 / width if skip_scale is None else skip_scale)
