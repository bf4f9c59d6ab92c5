"""The table of operations that keep units apart: each does, and each goes by the names that torch gives it."""

from __future__ import annotations

import operator
import re
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.randomness import torch_generator
from skiplab.subjects import operations
from skiplab.subjects.operations import KEEP_UNITS_APART, Operation, keeps_units_apart

SETTINGS: dict[str, tuple[Any, ...]] = {"Upsample": (None, 2), "UpsamplingNearest2d": (None, 2)}
SETTINGS |= {"UpsamplingBilinear2d": (None, 2), "Dropout": (0.5,)}
MODULES = sorted({kind for each in KEEP_UNITS_APART for kind in each.modules}, key=lambda kind: kind.__name__)


def _module(kind: type[nn.Module]) -> nn.Module:
    takes_size = "Pool" in kind.__name__ or "ZeroPad" in kind.__name__
    return kind(*SETTINGS.get(kind.__name__, (2,) if takes_size else ())).double().eval()


def _images(kind: type[nn.Module]) -> Tensor:
    """Samples, channels and pixels, as many axes as the module takes."""
    found = re.search(r"(\d)d$", kind.__name__)
    axes = int(found[1]) if found else 2
    stream = torch_generator(0, "images", kind.__name__)
    return torch.randn(1, 3, *[4] * axes, generator=stream, dtype=torch.float64)


@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
def test_a_unit_depends_on_itself_alone(kind: type[nn.Module]) -> None:
    part, x = _module(kind), _images(kind)
    jacobian = torch.autograd.functional.jacobian(part, x)
    out = part(x)
    if kind is nn.Flatten:  # a run of features a channel
        jacobian, out = jacobian.unflatten(1, (3, -1)), out.unflatten(1, (3, -1))
    for unit in range(3):
        for other in range(3):
            own = jacobian[0, unit].flatten(0, out.ndim - 3)[:, 0, other]
            assert bool(own.any()) == (unit == other)


@pytest.mark.parametrize("kind", MODULES, ids=lambda kind: kind.__name__)
def test_modules_with_a_node_in_autograds_graph_are_known_by_it(kind: type[nn.Module]) -> None:
    owner = next(each for each in KEEP_UNITS_APART if kind in each.modules)
    y = _module(kind)(_images(kind).requires_grad_())
    if not owner.nodes or kind in (nn.ZeroPad1d, nn.ZeroPad2d, nn.ZeroPad3d) or y.grad_fn is None:
        return  # not followed in autograd's graph
    assert keeps_units_apart(y.grad_fn.name())


@pytest.mark.parametrize(
    ("call", "keeps"),
    [
        (lambda x: x + 1, True),
        (lambda x: x - x, True),
        (lambda x: 2 * x, True),
        (lambda x: x / 2, True),
        (lambda x: -x, True),
        (lambda x: x.mean(0), True),
        (lambda x: x.view(2, 1, 3), True),
        (lambda x: x.flatten(), True),
        (lambda x: x.unsqueeze(0), True),
        (lambda x: torch.sigmoid(x), True),
        (lambda x: torch.tanh(x), True),
        (lambda x: nn.functional.batch_norm(x, None, None, training=True), True),
        (lambda x: nn.functional.hardtanh(x), True),
        (lambda x: x.T, False),
        (lambda x: x @ torch.ones(3, 3), False),
        (lambda x: x.softmax(-1), False),
        (lambda x: x.sum(), False),
        (lambda x: x[:, :2], False),
        (lambda x: torch.cat([x, x], 1), False),
    ],
)
def test_nodes_of_autograds_graph(call: Any, keeps: bool) -> None:
    x = torch.randn(2, 3, generator=torch_generator(0, "x")).requires_grad_()
    assert keeps_units_apart(call(x).grad_fn.name()) == keeps


def test_methods_and_functions_exist_in_torch() -> None:
    for each in KEEP_UNITS_APART:
        assert all(hasattr(Tensor, name) for name in each.methods)
        assert all(callable(function) for function in each.functions)


def test_an_operation_under_all_its_names() -> None:
    assert operations.SUMS.kinds >= {operator.add, torch.sub, "add_"}
    assert operations.RELU.names == {"relu", "relu_"}
    assert operations.VIEWS.names == {"view", "reshape"}
    assert Operation().kinds == frozenset()
