"""How one operation passes on values, directions and gradients: the rules that ``forward_mode`` strings together.

Pearlmutter (1994) gets Hv exactly from two sweeps. Forwards, every y = f(a, b, …) passes on the direction
ẏ = J ẋ; backwards, the gradient ḡ_x = Jᵀ ḡ_y and the gradient's own derivative along v, which is

    R ḡ_x = Jᵀ R ḡ_y + (R Jᵀ) ḡ_y .

A rule knows J, Jᵀ and the *cross term* (R Jᵀ) ḡ. All tensors carry an axis of lanes first: a lane is a member
of an ensemble, or one of several vectors for a single network, whose values then have one lane that serves
all. None stands for zero throughout.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from skiplab.curvature.sweeps.streams import kept_for_stream
from skiplab.curvature.sweeps.workspace import Workspace

Values = Sequence[Tensor | None]
Gradients = list[Tensor | None]
Wanted = Sequence[bool]
Maybe = Tensor | None


class Rule(ABC):
    """What one operation does; ``aux`` is what ``primal`` keeps for the sweeps.

    ``reads_values`` says whether the sweeps look at the inputs, ``curved`` whether there is a cross term, for
    which directions and gradients must be kept.
    """

    reads_values = False
    curved = False

    @abstractmethod
    def primal(self, x: Values) -> tuple[Tensor, Any]:
        """The value and what the sweeps need besides."""

    @abstractmethod
    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        """J ẋ; at least one of the directions is not None."""

    @abstractmethod
    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        """Jᵀ g for the inputs that are wanted."""

    def turned(
        self, x: Values, aux: Any, dx: Values, g: Maybe, r: Maybe, wanted: Wanted, space: Workspace
    ) -> Gradients:
        """Jᵀ r + (R Jᵀ) g for the inputs that are wanted; the second term is 0 unless a rule says otherwise."""
        return [None] * len(x) if r is None else self.cotangent(x, aux, r, wanted, space)


class Sum(Rule):
    """a + scale·b with broadcasting; ``scale`` −1 makes a difference."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def primal(self, x: Values) -> tuple[Tensor, Any]:
        a, b = present(x)
        rank = max(a.ndim, b.ndim)
        value = torch.add(aligned(a, rank), aligned(b, rank), alpha=self.scale)
        return value, (a.shape[1:], b.shape[1:], value.shape[1:])

    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        full = aux[2]
        da, db = (None if d is None else aligned(d, len(full) + 1) for d in dx)
        if da is not None and db is not None:
            return space.add(da, db, self.scale)
        only = da if db is None else space.mul(db, self.scale)
        assert only is not None
        return only.expand(only.shape[0], *full)

    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        second = unbroadcast(g, aux[1]) if wanted[1] else None
        if second is not None and self.scale != 1:
            second = space.mul(second, self.scale)
        return [unbroadcast(g, aux[0]) if wanted[0] else None, second]


class Scale(Rule):
    """c·x with a number c."""

    def __init__(self, factor: float) -> None:
        self.factor = factor

    def primal(self, x: Values) -> tuple[Tensor, Any]:
        return present(x)[0] * self.factor, None

    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        return space.mul(present(dx)[0], self.factor)

    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        return [space.mul(g, self.factor)]


class Elementwise(Rule):
    """y = f(x), given the function that returns f, f′ and f″ (None where it vanishes) at x."""

    def __init__(
        self, function: Callable[[Tensor], tuple[Tensor, Tensor, Tensor | None]], *, curved: bool
    ) -> None:
        self.function = function
        self.curved = curved

    def primal(self, x: Values) -> tuple[Tensor, Any]:
        value, first, second = self.function(*present(x))
        return value, (first, second)

    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        return space.mul(present(dx)[0], aux[0])

    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        return [space.mul(g, aux[0])]

    def turned(
        self, x: Values, aux: Any, dx: Values, g: Maybe, r: Maybe, wanted: Wanted, space: Workspace
    ) -> Gradients:
        first = None if r is None else space.mul(r, aux[0])
        if not self.curved or g is None or dx[0] is None:
            return [first]
        bent = aux[1] * g
        return [space.mul(dx[0], bent) if first is None else first.addcmul_(dx[0], bent)]


def relu(x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """The ReLU; its derivative at 0 is 0, as autograd has it."""
    return F.relu(x), (x > 0).to(x.dtype), None


def leaky_relu(x: Tensor, slope: float) -> tuple[Tensor, Tensor, Tensor | None]:
    """The ReLU with a slope on the left."""
    return F.leaky_relu(x, slope), torch.full_like(x, slope).masked_fill_(x > 0, 1.0), None


def tanh(x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """tanh′ = 1 − tanh², tanh″ = −2 tanh tanh′."""
    y = x.tanh()
    first = 1 - y * y
    return y, first, -2 * y * first


def sigmoid(x: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
    """σ′ = σ (1 − σ), σ″ = σ′ (1 − 2σ)."""
    y = x.sigmoid()
    first = y * (1 - y)
    return y, first, first * (1 - 2 * y)


class FixedValue(Rule):
    """A function of tensors that no parameter reaches, such as running statistics."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = function

    def primal(self, x: Values) -> tuple[Tensor, Any]:
        return mapped(self.function, present(x)), None

    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        raise AssertionError("a fixed value has no direction")

    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        raise AssertionError("a fixed value has no gradient")


class LinearMap(Rule):
    """Any operation that is linear in its tensors jointly and has no parameters: pooling, padding, slicing.

    Its transpose comes from autograd, taken once for a number of lanes on a stream and kept.
    """

    reads_values = True

    def __init__(self, function: Callable[..., Tensor]) -> None:
        self.function = function
        self._transposes: dict[tuple[int, int], Callable[[Tensor], tuple[Tensor, ...]]] = {}

    def primal(self, x: Values) -> tuple[Tensor, Any]:
        return mapped(self.function, present(x)), None

    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        pairs = zip(present(x), dx, strict=True)
        return mapped(self.function, [torch.zeros_like(v[:1]) if d is None else d for v, d in pairs])

    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        lanes = g.shape[0]

        def transpose() -> Callable[[Tensor], tuple[Tensor, ...]]:
            points = [torch.zeros_like(v[:1]).expand(lanes, *v.shape[1:]) for v in present(x)]
            return torch.func.vjp(lambda *v: mapped(self.function, v), *points)[1]

        found = kept_for_stream(self._transposes, lanes, g.device, transpose)(g)
        return [gradient if want else None for gradient, want in zip(found, wanted, strict=True)]


# Lanes and broadcasting -----------------------------------------------------------------------------------


def present(x: Values) -> list[Tensor]:
    """The tensors, none of which may be missing."""
    found = [tensor for tensor in x if tensor is not None]
    assert len(found) == len(x)
    return found


def plus(a: Tensor | None, b: Tensor) -> Tensor:
    """a + b in the memory of a, if there is an a."""
    return b if a is None else a.add_(b)


def mapped(function: Callable[..., Tensor], tensors: Sequence[Tensor]) -> Tensor:
    """Map a function over the lanes; a tensor with one lane serves all of them."""
    lanes = max(tensor.shape[0] for tensor in tensors)
    dims = tuple(0 if tensor.shape[0] == lanes else None for tensor in tensors)
    shared = [tensor[0] if dim is None else tensor for tensor, dim in zip(tensors, dims, strict=True)]
    return torch.vmap(function, in_dims=dims)(*shared)


def aligned(tensor: Tensor, rank: int) -> Tensor:
    """Put axes of length one behind the lanes, so that what follows broadcasts as without lanes."""
    missing = rank - tensor.ndim
    return tensor.reshape(tensor.shape[0], *[1] * missing, *tensor.shape[1:]) if missing else tensor


def unbroadcast(g: Tensor, shape: torch.Size) -> Tensor:
    """Sum a gradient over the axes along which a value of this shape (lanes left out) was repeated."""
    if g.shape[1:] == shape:
        return g
    return g.sum_to_size(g.shape[0], *[1] * (g.ndim - 1 - len(shape)), *shape).view(g.shape[0], *shape)
