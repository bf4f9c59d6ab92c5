"""Every rule by itself against autograd in float64: J ẋ, Jᵀ g and Jᵀ r + (R Jᵀ) g, for members and for vectors.

A rule, or a function for ``Elementwise``, that has no case here fails ``test_every_rule_has_a_case``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd.functional import jvp, vjp
from torch.nn import functional as F

from skiplab.curvature.sweeps import bilinear_rules as bilinear
from skiplab.curvature.sweeps import forward_rules as rules
from skiplab.curvature.sweeps import rectified_rule
from skiplab.curvature.sweeps.forward_rules import Rule
from skiplab.curvature.sweeps.workspace import Workspace
from skiplab.randomness import torch_generator

LANES = 3
close = partial(torch.testing.assert_close, rtol=1e-12, atol=1e-12)


@dataclass(frozen=True)
class Case:
    """A rule, the function that it stands for, and the shapes of what that takes; None is left out."""

    rule: Rule
    function: Callable[..., Tensor]
    shapes: tuple[tuple[int, ...] | None, ...]


def _convolution(shape: tuple[int, ...], weight: tuple[int, ...], bias: bool, *settings: Any) -> Case:
    stride, padding, dilation, groups = settings
    return Case(
        bilinear.Convolution(stride, padding, dilation, groups),
        lambda x, w, b=None: F.conv2d(x, w, b, stride, padding, dilation, groups),
        (shape, weight, (weight[0],) if bias else None),
    )


def _product(a: tuple[int, ...], b: tuple[int, ...]) -> Case:
    return Case(bilinear.Product(), torch.mul, (a, b, None))


CASES = {
    "sum": Case(rules.Sum(), torch.add, ((5, 4), (5, 4))),
    "sum that repeats the second": Case(rules.Sum(), torch.add, ((5, 4), (4,))),
    "sum that repeats both": Case(rules.Sum(), torch.add, ((5, 1), (1, 4))),
    "difference": Case(rules.Sum(-1), torch.sub, ((5, 4), (5, 4))),
    "difference that repeats the first": Case(rules.Sum(-1), torch.sub, ((4,), (5, 4))),
    "scale": Case(rules.Scale(-2.5), lambda x: -2.5 * x, ((5, 4),)),
    "relu": Case(rules.Elementwise(rules.relu, curved=False), torch.relu, ((5, 4),)),
    "linear layer and relu": Case(
        rectified_rule.RectifiedAffine(),
        lambda x, w, b: torch.relu(F.linear(x, w, b)),
        ((5, 4), (3, 4), (3,)),
    ),
    "leaky relu": Case(
        rules.Elementwise(partial(rules.leaky_relu, slope=0.2), curved=False),
        lambda x: F.leaky_relu(x, 0.2),
        ((5, 4),),
    ),
    "tanh": Case(rules.Elementwise(rules.tanh, curved=True), torch.tanh, ((5, 4),)),
    "sigmoid": Case(rules.Elementwise(rules.sigmoid, curved=True), torch.sigmoid, ((2, 5, 4),)),
    "mean over an axis": Case(rules.LinearMap(lambda x: x.mean(1)), lambda x: x.mean(1), ((5, 4),)),
    "tensors in a row": Case(
        rules.LinearMap(lambda *x: torch.cat(x, 1)), lambda *x: torch.cat(x, 1), ((5, 4), (5, 2))
    ),
    "pooling": Case(
        rules.LinearMap(lambda x: F.avg_pool2d(x, 2)), lambda x: F.avg_pool2d(x, 2), ((2, 3, 4, 4),)
    ),
    "linear layer": Case(bilinear.Affine(), F.linear, ((5, 4), (3, 4), (3,))),
    "linear layer without biases": Case(bilinear.Affine(), F.linear, ((5, 4), (3, 4), None)),
    "linear layer on a sequence": Case(bilinear.Affine(), F.linear, ((2, 5, 4), (3, 4), (3,))),
    "linear layer on a vector": Case(bilinear.Affine(), F.linear, ((4,), (3, 4), (3,))),
    "product": _product((5, 4), (5, 4)),
    "product that repeats the second": _product((5, 4), (4,)),
    "product that repeats the first": _product((), (5, 4)),
    "product that repeats both": _product((5, 1), (1, 4)),
    "convolution": _convolution((2, 3, 5, 5), (4, 3, 3, 3), True, 1, 0, 1, 1),
    "convolution with steps": _convolution((2, 3, 6, 5), (4, 3, 3, 2), True, (2, 1), (1, 0), 1, 1),
    "convolution with holes": _convolution((2, 3, 5, 5), (2, 3, 2, 2), False, 1, 2, 2, 1),
    "convolution in groups": _convolution((2, 4, 4, 4), (6, 2, 3, 3), True, 1, 1, 1, 2),
}
FIXED = Case(rules.FixedValue(lambda x: (x + 2).rsqrt()), lambda x: (x + 2).rsqrt(), ((4,),))

Tensors = list[Tensor | None]


def _drawn(shapes: Sequence[Any], lanes: int, *name: Any) -> Tensors:
    stream = torch_generator("rules", *name)
    return [
        None if shape is None else torch.randn(lanes, *shape, generator=stream, dtype=torch.float64)
        for shape in shapes
    ]


def _lane(tensor: Tensor, index: int) -> Tensor:
    return tensor[index if len(tensor) > 1 else 0]


class Point:
    """A rule at a point, and the same by autograd, lane by lane.

    ``lanes`` is that of the values: as many as directions for members, one for several vectors of a network.
    """

    def __init__(self, case: Case, lanes: int, reuse: bool) -> None:
        self.rule, self.function = case.rule, case.function
        self.space = Workspace(reuse=reuse)
        self.x = _drawn(case.shapes, lanes, "x")
        self.dx = _drawn(case.shapes, LANES, "dx")
        self.there = [place for place, shape in enumerate(case.shapes) if shape is not None]
        self.value, self.aux = self.rule.primal(self.x)
        shape = self.value.shape[1:]
        self.g, self.r = _drawn([shape], lanes, "g")[0], _drawn([shape], LANES, "r")[0]
        # What is not read is not kept.
        self.kept: Tensors = self.x if self.rule.reads_values else [None] * len(self.x)

    def at(self, lane: int) -> tuple[Tensor, ...]:
        """The values of one lane that are there."""
        return tuple(_lane(x, lane) for x in self.x if x is not None)

    def along(self, lane: int, moved: Sequence[bool]) -> tuple[Tensor, ...]:
        """The directions of one lane, 0 where nothing moves."""
        pairs = zip(self.dx, moved, strict=True)
        return tuple(_lane(dx, lane) * move for dx, move in pairs if dx is not None)

    def directions(self, moved: Sequence[bool]) -> Tensors:
        """The directions as the sweeps have them, None where nothing moves."""
        pairs = zip(self.dx, moved, strict=True)
        return [dx.clone() if dx is not None and move else None for dx, move in pairs]

    def choices(self) -> Iterator[list[bool]]:
        """All inputs together and each by itself."""
        yield [dx is not None for dx in self.dx]
        for place in self.there:
            yield [other == place for other in range(len(self.dx))]

    def pulled_back(self, lane: int, g: Tensor) -> tuple[Tensor, ...]:
        """Jᵀ g of one lane by autograd."""
        return vjp(self.function, self.at(lane), _lane(g, lane))[1]

    def cross(self, lane: int, moved: Sequence[bool]) -> tuple[Tensor, ...]:
        """(R Jᵀ) g of one lane by autograd: the derivative of Jᵀ g along the directions."""

        def pulled_back(*x: Tensor) -> tuple[Tensor, ...]:
            return vjp(self.function, x, _lane(self.g, lane), create_graph=True)[1]

        return jvp(pulled_back, self.at(lane), self.along(lane, moved))[1]

    def check(
        self, found: Tensors, wanted: Sequence[bool], expected: Callable[[int], Sequence[Tensor]]
    ) -> None:
        """Compare what a rule gives for each input with what is expected; None stands for 0."""
        assert all(x is None for x, want in zip(found, wanted, strict=True) if not want)
        for lane in range(LANES):
            for place, reference in zip(self.there, expected(lane), strict=True):
                one = found[place]
                if wanted[place]:
                    close(torch.zeros_like(reference) if one is None else _lane(one, lane), reference)


@pytest.fixture(params=[(LANES, False), (LANES, True), (1, True)], ids=["members", "reused", "vectors"])
def lanes(request: pytest.FixtureRequest) -> tuple[int, bool]:
    return request.param


@pytest.fixture(params=CASES)
def point(request: pytest.FixtureRequest, lanes: tuple[int, bool]) -> Point:
    return Point(CASES[request.param], *lanes)


def test_values(point: Point) -> None:
    for lane in range(LANES):
        close(_lane(point.value, lane), point.function(*point.at(lane)))


def test_directions_go_forwards(point: Point) -> None:
    for moved in point.choices():
        found = point.rule.tangent(point.kept, point.aux, point.directions(moved), point.space)
        for lane in range(LANES):
            close(
                _lane(found, lane),
                jvp(point.function, point.at(lane), point.along(lane, moved))[1],
            )


def test_gradients_go_backwards(point: Point) -> None:
    for g in (point.g, point.r):
        for wanted in point.choices():
            found = point.rule.cotangent(point.kept, point.aux, g.clone(), wanted, point.space)
            point.check(found, wanted, lambda lane, g=g: point.pulled_back(lane, g))


def test_the_cross_term(point: Point) -> None:
    for moved in point.choices():
        for wanted in point.choices():
            dx = point.directions(moved)
            found = point.rule.turned(point.kept, point.aux, dx, point.g.clone(), None, wanted, point.space)
            point.check(found, wanted, lambda lane, moved=moved: point.cross(lane, moved))


def test_gradients_that_turn(point: Point) -> None:
    for moved in point.choices():
        wanted = [x is not None for x in point.x]
        args = (point.kept, point.aux, point.directions(moved), point.g.clone(), point.r.clone())
        found = point.rule.turned(*args, wanted, point.space)

        def expected(lane: int, moved: Sequence[bool] = moved) -> list[Tensor]:
            turned = zip(point.pulled_back(lane, point.r), point.cross(lane, moved), strict=True)
            return [r + cross for r, cross in turned]

        point.check(found, wanted, expected)


def test_without_a_gradient_or_a_direction_there_is_no_cross_term(point: Point) -> None:
    wanted = [x is not None for x in point.x]
    for dx, g in ((point.directions(wanted), None), ([None] * len(point.x), point.g.clone())):
        found = point.rule.turned(point.kept, point.aux, dx, g, point.r.clone(), wanted, point.space)
        point.check(found, wanted, lambda lane: point.pulled_back(lane, point.r))


def test_only_curved_rules_have_a_cross_term(point: Point) -> None:
    wanted = [x is not None for x in point.x]
    bends = any(bool(cross.any()) for cross in point.cross(0, wanted))
    assert bends == point.rule.curved


def test_fixed_values_have_neither_direction_nor_gradient(lanes: tuple[int, bool]) -> None:
    point = Point(FIXED, *lanes)
    test_values(point)
    with pytest.raises(AssertionError, match="no direction"):
        point.rule.tangent(point.kept, point.aux, point.dx, point.space)
    with pytest.raises(AssertionError, match="no gradient"):
        point.rule.cotangent(point.kept, point.aux, point.g, [True], point.space)


def _rules(kind: type[Rule]) -> Iterator[type[Rule]]:
    for below in kind.__subclasses__():
        if not inspect.isabstract(below) and below.__module__.startswith("skiplab."):
            yield below
        yield from _rules(below)


def test_every_rule_has_a_case() -> None:
    tried = [case.rule for case in (*CASES.values(), FIXED)]
    missing = {kind.__name__ for kind in _rules(Rule)} - {type(rule).__name__ for rule in tried}
    assert not missing, f"add a case for {sorted(missing)}"
    kinds = {
        function
        for function in vars(rules).values()
        if inspect.isfunction(function)
        and str(inspect.signature(function).return_annotation) == "tuple[Tensor, Tensor, Tensor | None]"
    }
    given = [rule.function for rule in tried if isinstance(rule, rules.Elementwise)]
    assert kinds == {getattr(function, "func", function) for function in given}, "add a case for the function"
