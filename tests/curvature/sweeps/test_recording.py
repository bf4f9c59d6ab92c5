"""Every function that can be recorded, by itself: products with its Hessian against the dense one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oracles.dense_hessian import dense_hessian
from skiplab.curvature.sweeps.forward_mode import ForwardMode
from skiplab.curvature.sweeps.recording import RECORDERS
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject


def normal(*shape: int, seed: Any = 0) -> Tensor:
    return torch.randn(*shape, generator=torch_generator("recording", seed), dtype=torch.float64)


ROW = normal(4, seed="row")
# 1.5 + y is handed over under either name.
OR_AS = {"__radd__": "add", "__rmul__": "mul"}
# Each is given y = tanh(x Wᵀ), (3, 4), and another parameter, (4,); what it returns may have any shape.
CALLS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "linear": lambda y, w: F.linear(y, w.view(1, 4)),
    "conv2d": lambda y, w: F.conv2d(
        y.view(1, 3, 2, 2), w.view(1, 1, 2, 2).expand(3, 1, 2, 2), None, 1, 1, 1, 3
    ),
    "batch_norm": lambda y, w: F.batch_norm(y, ROW, ROW**2, w, w),
    "dropout": lambda y, w: F.dropout(y, 0.5, False) * w,
    "dropout1d": lambda y, w: F.dropout1d(y, 0.5, False) * w,
    "dropout2d": lambda y, w: F.dropout2d(y.view(1, 3, 2, 2), 0.5, False),
    "dropout3d": lambda y, w: F.dropout3d(y.view(1, 3, 2, 2, 1), 0.5, False),
    "leaky_relu": lambda y, w: F.leaky_relu(y * w, 0.2),
    "relu": lambda y, w: torch.relu(y * w),
    "relu_": lambda y, w: (y * w).relu_(),
    "tanh": lambda y, w: torch.tanh(y * w),
    "tanh_": lambda y, w: (y * w).tanh_(),
    "sigmoid": lambda y, w: torch.sigmoid(y * w),
    "sigmoid_": lambda y, w: (y * w).sigmoid_(),
    "add": lambda y, w: torch.add(y, w) * w,
    "add_": lambda y, w: y.clone().add_(w) * w,
    "__radd__": lambda y, w: (1.5 + y) * w,
    "sub": lambda y, w: torch.sub(y, w) * w,
    "sub_": lambda y, w: y.clone().sub_(w) * w,
    "__rsub__": lambda y, w: (1.5 - y) * w,
    "mul": lambda y, w: torch.mul(y, w),
    "mul_": lambda y, w: y.clone().mul_(w),
    "__rmul__": lambda y, w: 1.5 * y * w,
    "div": lambda y, w: torch.div(y * w, 3),
    "div_": lambda y, w: (y * w).div_(3),
    "true_divide": lambda y, w: torch.true_divide(y * w, 3),
    "neg": lambda y, w: -(y * w),
    "clone": lambda y, w: y.clone() * w,
    "contiguous": lambda y, w: y.contiguous() * w,
    "view": lambda y, w: (y * w).view(2, 6),
    "reshape": lambda y, w: (y * w).reshape(2, -1),
    "expand_as": lambda y, w: w.expand_as(y) * y,
    "__getitem__": lambda y, w: (y * w)[1:, ::2],
    "sum": lambda y, w: (y * w).sum(0),
    "mean": lambda y, w: (y * w).mean(1),
    "stack": lambda y, w: torch.stack([y, y * w], 1),
    "cat": lambda y, w: torch.cat([y, y * w], 1),
    "pad": lambda y, w: F.pad(y * w, (1, 2)),
    "flatten": lambda y, w: (y * w).flatten(),
    "unflatten": lambda y, w: (y * w).unflatten(1, (2, 2)),
    "transpose": lambda y, w: (y * w).transpose(0, 1),
    "permute": lambda y, w: (y * w).permute(1, 0),
    "squeeze": lambda y, w: (y * w)[:, :1].squeeze(1),
    "unsqueeze": lambda y, w: (y * w).unsqueeze(1),
    "expand": lambda y, w: w.expand(3, 4) * y,
    "avg_pool2d": lambda y, w: F.avg_pool2d((y * w).view(1, 3, 2, 2), 2),
    "adaptive_avg_pool2d": lambda y, w: F.adaptive_avg_pool2d((y * w).view(1, 3, 2, 2), 1),
}


class Net(nn.Module):
    def __init__(self, call: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.first, self.second = nn.Parameter(normal(4, 2, seed="a")), nn.Parameter(normal(4, seed="b"))
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(F.linear(x, self.first).tanh(), self.second)


def curved_loss(output: Tensor, target: Tensor) -> Tensor:
    return (output**3).sum() / 3 + output.sum()


@pytest.mark.parametrize("name", sorted(RECORDERS))  # a set of torch's names, in any order
def test_it_has_its_dense_hessian(name: str) -> None:
    assert name in CALLS, f"{name} has a rule; give it a call here"
    net, x = Net(CALLS[name]), normal(3, 2, seed="x")
    seen: set[str] = set()

    class Watch(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.add(func.__name__)
            return func(*args, **(kwargs or {}))

    with Watch():
        net(x)
    assert {name, OR_AS.get(name)} & seen, f"the call for {name} does not call it"
    names = ("first", "second")
    expected = dense_hessian(net, names, lambda model: curved_loss(model(x), x))
    found = ForwardMode(Subject.of(net, criterion=curved_loss), (x, x), names)
    vectors = normal(3, 12, seed="vectors")
    torch.testing.assert_close(found.product(vectors), vectors @ expected, rtol=1e-11, atol=1e-11)
