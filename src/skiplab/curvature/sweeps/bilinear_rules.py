"""Rules for operations that are linear in each of two tensors: linear layers, convolutions, products.

The cross term of ⟨a, b⟩ needs no new mathematics: it is the transpose taken at the direction, ⟨·, ḃ⟩ᵀ ḡ for a
and ⟨ȧ, ·⟩ᵀ ḡ for b.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from torch import Tensor
from torch.nn import functional as F
from torch.nn.grad import conv2d_input, conv2d_weight

from skiplab.curvature.sweeps.forward_rules import (
    Gradients,
    Maybe,
    Rule,
    Values,
    Wanted,
    aligned,
    mapped,
    plus,
    present,
    unbroadcast,
)
from skiplab.curvature.sweeps.workspace import Workspace


class Bilinear(Rule):
    """y = ⟨a, b⟩ + c with a product that is linear in a and in b, such as a layer of weights b and biases c.

    Subclasses give the product and its two transposes. What they are given as ``out`` they add to and may
    overwrite.
    """

    reads_values = curved = True
    bias_axis = -1  # the axis of the output along which c runs

    @abstractmethod
    def product(self, a: Tensor, b: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        """⟨a, b⟩."""

    @abstractmethod
    def to_a(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        """⟨·, b⟩ᵀ g; of a only the shape counts."""

    @abstractmethod
    def to_b(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        """⟨a, ·⟩ᵀ g; of b only the shape counts."""

    def primal(self, x: Values) -> tuple[Tensor, Any]:
        a, b = present(x[:2])
        value = self.product(a, b, Workspace(reuse=False))
        if x[2] is not None:
            value += self._spread(x[2], value.ndim)
        return value, value.shape[1:]

    def tangent(self, x: Values, aux: Any, dx: Values, space: Workspace) -> Tensor:
        (a, b), (da, db, dc) = present(x[:2]), dx
        total = None
        if db is not None:
            total = self.product(a, db, space)
        if da is not None:
            total = self.product(da, b, space, total)
        if dc is None:
            assert total is not None
            return total
        biases = self._spread(dc, len(aux) + 1)
        return biases.expand(dc.shape[0], *aux) if total is None else total.add_(biases)

    def cotangent(self, x: Values, aux: Any, g: Tensor, wanted: Wanted, space: Workspace) -> Gradients:
        a, b = present(x[:2])
        to_a = self.to_a(a, b, g, space) if wanted[0] else None
        to_b = self.to_b(a, b, g, space) if wanted[1] else None
        return [to_a, to_b, self._gathered(g) if wanted[2] else None]

    def turned(
        self, x: Values, aux: Any, dx: Values, g: Maybe, r: Maybe, wanted: Wanted, space: Workspace
    ) -> Gradients:
        (a, b), (da, db, _) = present(x[:2]), dx
        to_a = to_b = None
        if wanted[0]:
            to_a = self.to_a(a, db, g, space) if g is not None and db is not None else None
            to_a = self.to_a(a, b, r, space, to_a) if r is not None else to_a
        if wanted[1]:
            to_b = self.to_b(da, b, g, space) if g is not None and da is not None else None
            to_b = self.to_b(a, b, r, space, to_b) if r is not None else to_b
        return [to_a, to_b, self._gathered(r) if wanted[2] and r is not None else None]

    def _spread(self, c: Tensor, rank: int) -> Tensor:
        shape = [c.shape[0]] + [1] * (rank - 1)
        shape[self.bias_axis] = c.shape[1]
        return c.reshape(shape)

    def _gathered(self, g: Tensor) -> Tensor:
        others = [axis for axis in range(1, g.ndim) if axis != self.bias_axis % g.ndim]
        return g.sum(others) if others else g


class Affine(Bilinear):
    """x Wᵀ + b, the linear layer, by batched matrix products over the lanes; x may have several batch axes."""

    def product(self, a: Tensor, b: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        y = _matrices(_rows(a), b.mT, space, None if out is None else _rows(out))
        return y.view(y.shape[0], *a.shape[1:-1], b.shape[1])

    def to_a(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        y = _matrices(_rows(g), b, space, None if out is None else _rows(out))
        return y.view(y.shape[0], *a.shape[1:])

    def to_b(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        return _matrices(_rows(g).mT, _rows(a), space, out)


class Product(Bilinear):
    """a·b entry by entry, with broadcasting."""

    def product(self, a: Tensor, b: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        rank = max(a.ndim, b.ndim)
        return plus(out, space.mul(aligned(a, rank), aligned(b, rank)))

    def to_a(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        return plus(out, unbroadcast(space.mul(g, aligned(b, g.ndim)), a.shape[1:]))

    def to_b(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        return self.to_a(b, a, g, space, out)


class Convolution(Bilinear):
    """A 2-D convolution with weights b and biases c."""

    bias_axis = 2

    def __init__(self, stride: Any, padding: Any, dilation: Any, groups: int) -> None:
        self.settings = (stride, padding, dilation, groups)

    def product(self, a: Tensor, b: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        return plus(out, mapped(lambda x, w: F.conv2d(x, w, None, *self.settings), (a, b)))

    def to_a(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        shape = a.shape[1:]
        return plus(out, mapped(lambda w, g: conv2d_input(shape, w, g, *self.settings), (b, g)))

    def to_b(self, a: Tensor, b: Tensor, g: Tensor, space: Workspace, out: Maybe = None) -> Tensor:
        shape = b.shape[1:]
        return plus(out, mapped(lambda x, g: conv2d_weight(x, shape, g, *self.settings), (a, g)))


def _rows(x: Tensor) -> Tensor:
    return x.reshape(x.shape[0], -1, x.shape[-1])


def _matrices(a: Tensor, b: Tensor, space: Workspace, out: Maybe) -> Tensor:
    lanes = max(a.shape[0], b.shape[0])
    a, b = a.expand(lanes, -1, -1), b.expand(lanes, -1, -1)  # a view: no lane is copied
    return space.bmm(a, b) if out is None else out.baddbmm_(a, b)
