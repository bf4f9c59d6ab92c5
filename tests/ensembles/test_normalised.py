"""Normalised convolutions by Triton's kernels: what float64 gives one network at a time, in value and gradient.

Without a GPU the kernels are interpreted (tests/conftest.py), which knows float32 and float16 but not bfloat16.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures.convolutional import IdentityShortcut
from skiplab.architectures.rectified import normalised_convolution
from skiplab.architectures.resnet import ResNet
from skiplab.ensembles import Ensemble, normalised, rectified
from skiplab.ensembles.normalised import NormalisedConvolution
from skiplab.randomness import torch_generator

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs Triton (the extra fused)"
)
E, B = 2, 3
EPS, MOMENTUM = 1e-5, 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NAMES = ("outputs", "images", "weights", "scales", "shifts", "passed")


def draws(*shape: int, name: str = "x") -> Tensor:
    return torch.randn(*shape, generator=torch_generator(name, *shape), dtype=torch.float64)


@pytest.fixture(autouse=True)
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The kernels serve the CPU too, and the shapes that they were given."""
    seen: list[tuple[Any, ...]] = []
    apply = NormalisedConvolution.apply

    def counted(x: Tensor, weight: Tensor, *others: Any) -> Tensor:
        seen.append((x.dtype, tuple(x.shape), tuple(weight.shape)))
        return apply(x, weight, *others)

    monkeypatch.setattr(rectified, "available", lambda device: True)
    monkeypatch.setattr(normalised.NormalisedConvolution, "apply", counted)
    return seen


def one_by_one(
    x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, *others: Any
) -> Tensor:
    """The same of each member alone, by torch's own operations on (B, C, H, W)."""
    mean, variance, passed, stride, shortcut_stride, training, eps, momentum = others
    found = []
    for e in range(len(x)):
        field = F.conv2d(x[e].permute(0, 3, 1, 2), weight[e], None, stride, 1)
        vectors = mean[e], variance[e], scale[e], shift[e]
        field = F.batch_norm(field, *vectors, training, momentum, eps)
        if passed is not None:
            shortcut = IdentityShortcut(passed.shape[-1], field.shape[1], shortcut_stride)
            field = field + shortcut(passed[e].permute(0, 3, 1, 2))
        found.append(torch.relu(field).permute(0, 2, 3, 1))
    return torch.stack(found)


def compared(
    shape: tuple[int, int, int, int],
    stride: int,
    dtype: torch.dtype,
    *,
    passing: tuple[int, int] | None = None,
    training: bool = True,
    images: int = B,
    offset: float = 0.0,
) -> dict[str, float]:
    """Relative errors of outputs, gradients and statistics; ``passing`` are a shortcut's channels and stride."""
    channels, filters, height, width = shape
    exact = [
        draws(E, images, height, width, channels) + offset,
        draws(E, filters, channels, 3, 3, name="weight") / (3 * channels**0.5),
        draws(E, filters, name="scale"),
        draws(E, filters, name="shift"),
    ]
    running = [draws(E, filters, name="mean"), draws(E, filters, name="variance").exp()]
    passed_stride = 1
    if passing is not None:
        passed_channels, passed_stride = passing
        rows, columns = -(-height // stride), -(-width // stride)
        sides = rows * passed_stride - (passed_stride > 1), columns * passed_stride
        exact.append(draws(E, images, *sides, passed_channels, name="passed"))
    types = [dtype, torch.float32, torch.float32, torch.float32, dtype]
    exact = [tensor.to(dtype).double() for tensor in exact]
    leaves = [tensor.to(kind) for tensor, kind in zip(exact, types)]
    results = []
    for function, tensors, kind in (
        (one_by_one, exact, torch.float64),
        (NormalisedConvolution.apply, leaves, torch.float32),
    ):
        tensors = [tensor.to(DEVICE).requires_grad_() for tensor in tensors]
        changed = [tensor.to(DEVICE, kind, copy=True) for tensor in running]
        passed = None if passing is None else tensors[4]
        y = function(*tensors[:4], *changed, passed, stride, passed_stride, training, EPS, MOMENTUM)
        weights = draws(*y.shape, name="of outputs").to(dtype).to(y)
        results.append([y.detach(), *torch.autograd.grad((y * weights).sum(), tensors), *changed])
    names = [*NAMES[: len(exact) + 1], "mean", "variance"]
    return {
        name: float((ours.double() - theirs).norm() / theirs.norm())
        for name, theirs, ours in zip(names, *results, strict=True)
    }


SHAPES = [
    ((16, 16, 6, 8), 1, (16, 1)), ((16, 16, 2, 2), 1, (8, 1)), ((16, 16, 3, 8), 1, (16, 1)),
    ((4, 16, 5, 7), 1, (4, 1)), ((16, 32, 8, 8), 2, (16, 2)), ((16, 32, 7, 5), 2, (32, 1)),
    ((32, 64, 4, 4), 2, (32, 2)), ((64, 64, 3, 3), 1, (16, 2)), ((8, 32, 1, 2), 1, (32, 1)),
]  # fmt: skip


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize(("shape", "stride", "passing"), SHAPES)
def test_values_gradients_and_statistics_are_those_of_float64(
    shape: tuple[int, int, int, int], stride: int, passing: tuple[int, int], passes: bool
) -> None:
    errors = compared(shape, stride, torch.float32, passing=passing if passes else None)
    assert max(errors.values()) < 5e-6, errors
