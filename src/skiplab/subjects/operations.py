"""Which operations keep units apart, written once, under the names that torch gives them.

A unit is a feature of a linear layer or a channel of a convolution. An operation keeps units apart if each unit of
its result comes from one unit alone: activations, normalisation, dropout, pooling, flattening, sums with skips. What
is not listed here (a transpose, attention, a product with a fixed matrix) may mix them.

An operation is met in four ways: as a module, as a function or a tensor's method in a symbolic trace (torch.fx), and
as a node of autograd's graph. Who reads this table knows which of them it meets, and what more it must ask of an
operation: that it is linear, say, or that it treats all units alike.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Operation:
    """One operation under all its names; ``nodes`` are the beginnings of names in autograd's graph.

    An operation with fewer names than torch has for it is one that is not followed where it has none.
    """

    modules: tuple[type[nn.Module], ...] = ()
    functions: tuple[Callable[..., Any], ...] = ()
    methods: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()

    @property
    def kinds(self) -> frozenset[Any]:
        """What stands for it in a symbolic trace: types of modules, functions, names of methods."""
        return frozenset((*self.modules, *self.functions, *self.methods))

    @property
    def names(self) -> frozenset[str]:
        """What its functions and methods are called."""
        return frozenset((*(function.__name__ for function in self.functions), *self.methods))


# What does something to every entry by itself --------------------------------------------------------------

RELU = Operation((nn.ReLU,), (F.relu, torch.relu, F.relu_, torch.relu_), ("relu", "relu_"), ("Relu",))
# Activations that switch a unit on where their input is positive. Their output need not tell: that of a leaky ReLU
# with a negative slope is positive on both sides.
RECTIFIERS = (
    RELU,
    Operation((nn.ReLU6,), nodes=("Hardtanh",)),
    Operation((nn.LeakyReLU,), nodes=("LeakyRelu",)),
    Operation((nn.PReLU,), nodes=("Prelu",)),
    Operation((nn.RReLU,), nodes=("Rrelu",)),
    Operation((nn.ELU,), nodes=("Elu",)),
    Operation((nn.CELU,), nodes=("Celu",)),
    Operation((nn.SELU,), nodes=("Selu",)),
    Operation((nn.GELU,), nodes=("Gelu",)),
    Operation((nn.SiLU,), nodes=("Silu",)),
    Operation((nn.Mish,), nodes=("Mish",)),
    Operation((nn.Hardswish,), nodes=("Hardswish",)),
)
OTHER_ACTIVATIONS = Operation(
    nodes=(
        *("Abs", "Clamp", "Cos", "Exp", "Hard", "LogSigmoid", "Neg", "Pow", "Sigmoid", "Sin", "Softplus"),
        *("Softshrink", "Tanh", "Threshold"),
    )
)
COPIES = Operation(
    (nn.Identity,),
    methods=("contiguous", "clone", "float", "double"),
    nodes=("Alias", "BackwardHookFunction", "Clone", "ToCopy"),
)
# By a number or, in autograd's graph, by anything of a shape that keeps units apart.
PRODUCTS = Operation(functions=(operator.mul, torch.mul), methods=("mul",), nodes=("Mul",))
DIVISIONS = Operation(functions=(operator.truediv, torch.div), methods=("div",), nodes=("Div",))
SUMS = Operation(
    functions=(operator.add, operator.sub, operator.iadd, torch.add, torch.sub),
    methods=("add", "sub", "add_"),
    nodes=("Add", "Sub"),
)
# In evaluation mode the identity. Alpha dropout is not among them: in training it also shifts what it keeps.
DROPOUTS = Operation(
    (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d),
    (F.dropout, F.dropout1d, F.dropout2d, F.dropout3d),
    nodes=("NativeDropout", "CudnnDropout", "MiopenDropout"),
)

# What works within a unit: over its samples or pixels ------------------------------------------------------

NORMALISATIONS = Operation(
    nodes=tuple(
        f"{library}{kind}"
        for library in ("Native", "Cudnn", "Miopen")
        for kind in ("BatchNorm", "GroupNorm", "LayerNorm")
    )
)
# By the number of axes, the last ones, over which a window moves.
WINDOWS = {
    n: Operation(
        tuple(
            getattr(nn, f"{kind}{n}d")
            for kind in ("AvgPool", "MaxPool", "AdaptiveAvgPool", "AdaptiveMaxPool", "ZeroPad")
        ),
        tuple(getattr(F, f"{kind}_pool{n}d") for kind in ("avg", "max", "adaptive_avg", "adaptive_max")),
        nodes=("AvgPool", "MaxPool", "AdaptiveAvgPool", "AdaptiveMaxPool"),
    )
    for n in (1, 2, 3)
}
RESIZINGS = Operation((nn.Upsample, nn.UpsamplingNearest2d, nn.UpsamplingBilinear2d), (F.interpolate,))
MEANS = Operation(functions=(torch.mean,), methods=("mean",), nodes=("Mean",))

# What moves units without touching them --------------------------------------------------------------------

VIEWS = Operation(
    functions=(torch.reshape,),
    methods=("view", "reshape"),
    nodes=("View", "UnsafeView", "Reshape", "_Reshape", "Squeeze", "Unsqueeze"),
)
FLATTENINGS = Operation((nn.Flatten,), (torch.flatten,), ("flatten",))

KEEP_UNITS_APART = (
    *RECTIFIERS,
    *(OTHER_ACTIVATIONS, COPIES, PRODUCTS, DIVISIONS, SUMS, DROPOUTS, NORMALISATIONS),
    *WINDOWS.values(),
    *(RESIZINGS, MEANS, VIEWS, FLATTENINGS),
)

_NODES = re.compile("|".join(sorted({node for each in KEEP_UNITS_APART for node in each.nodes})))


def keeps_units_apart(node: str) -> bool:
    """Whether a node of autograd's graph, given by its name, keeps units apart."""
    return _NODES.match(node) is not None
