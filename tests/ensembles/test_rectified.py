"""Rectified convolutions by Triton's kernels: what float64 gives one network at a time, in value and gradient.

Without a GPU the kernels are interpreted (tests/conftest.py), which knows float32 and float16 but not bfloat16.
"""

from __future__ import annotations

import copy
import importlib.util
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

from skiplab.architectures.convolutional import IdentityShortcut
from skiplab.architectures.rectified import rectified_convolution
from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResNet
from skiplab.ensembles import Ensemble, rectified
from skiplab.randomness import torch_generator

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs Triton (the extra fused)"
)
E, B = 2, 3
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
NETWORKS = [SimplifiedPlnNet, SimplifiedResNet]


def draws(*shape: int, name: str = "x") -> Tensor:
    return torch.randn(*shape, generator=torch_generator(name, *shape), dtype=torch.float64)


@pytest.fixture(autouse=True)
def _exact(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)


@pytest.fixture
def fused(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """The kernels serve the CPU too, and the shapes that they were given."""
    seen: list[tuple[Any, ...]] = []
    apply = rectified.RectifiedConvolution.apply

    def counted(x: Tensor, weight: Tensor, *others: Any) -> Tensor:
        seen.append((x.dtype, tuple(x.shape), tuple(weight.shape)))
        return apply(x, weight, *others)

    monkeypatch.setattr(rectified, "available", lambda device: True)
    monkeypatch.setattr(rectified.RectifiedConvolution, "apply", counted)
    return seen


def one_by_one(x: Tensor, weight: Tensor, bias: Tensor, stride: int, skip: bool) -> Tensor:
    """The same of each member alone, by torch's own operations on (B, C, H, W)."""
    found = []
    for images, kernels, biases in zip(x.permute(0, 1, 4, 2, 3), weight, bias, strict=True):
        field = F.conv2d(images, kernels, biases, stride, 1)
        shortcut = IdentityShortcut(kernels.shape[1], kernels.shape[0], stride)
        found.append(torch.relu(field + shortcut(images) if skip else field).permute(0, 2, 3, 1))
    return torch.stack(found)


def compared(shape: tuple[int, int, int, int], stride: int, skip: bool, dtype: torch.dtype) -> list[float]:
    """Relative errors of outputs and of the gradients of images, weights and biases."""
    channels, filters, height, width = shape
    exact = [
        draws(E, B, height, width, channels),
        draws(E, filters, channels, 3, 3, name="weight") / (3 * channels**0.5),
        draws(E, filters, name="bias"),
    ]
    exact = [tensor.to(dtype).double() for tensor in exact]
    leaves = [exact[0].to(dtype), *[tensor.float() for tensor in exact[1:]]]
    results = []
    for function, tensors in ((one_by_one, exact), (rectified.RectifiedConvolution.apply, leaves)):
        tensors = [tensor.to(DEVICE).requires_grad_() for tensor in tensors]
        y = function(*tensors, stride, skip)
        weights = draws(*y.shape, name="of outputs").to(dtype).to(y)
        results.append([y.detach(), *torch.autograd.grad((y * weights).sum(), tensors)])
    return [
        float((ours.double() - theirs).norm() / theirs.norm()) for theirs, ours in zip(*results, strict=True)
    ]


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(
    ("shape", "stride"),
    [((16, 16, 6, 8), 1), ((16, 16, 2, 2), 1), ((16, 16, 3, 8), 1), ((4, 16, 5, 7), 1), ((16, 32, 8, 8), 2),
     ((16, 32, 7, 5), 2), ((32, 64, 4, 4), 2), ((64, 64, 3, 3), 1), ((8, 32, 1, 2), 1)],
)  # fmt: skip
def test_values_and_gradients_are_those_of_float64(
    shape: tuple[int, int, int, int], stride: int, skip: bool
) -> None:
    assert max(compared(shape, stride, skip, torch.float32)) < 1e-6


@pytest.mark.parametrize("skip", [False, True])
def test_half_precision_rounds_tensors_and_not_sums(skip: bool) -> None:
    errors = compared((16, 32, 8, 8), 2, skip, torch.float16)
    assert max(errors) < 2**-9  # of which float16's rounding of one number is a quarter
    assert errors[-1] < 1e-4  # biases and their gradients stay float32; y itself was rounded


@pytest.mark.parametrize("programs", [1, 30, 10**6])
@pytest.mark.parametrize("shape", [(16, 16, 6, 8), (16, 16, 5, 8)], ids=["by blocks", "by pixels"])
def test_sums_over_the_batch_do_not_depend_on_its_parts(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int, int], programs: int
) -> None:
    from skiplab.ensembles import wide_blocks, wide_kernels

    for kernels in (wide_blocks, wide_kernels):
        monkeypatch.setattr(kernels, "PROGRAMS", programs)
    monkeypatch.setattr(wide_blocks, "SUMMED", (16, 4, 1))
    monkeypatch.setitem(wide_kernels.TILES, "weights", {16: (16, 4, 1)})
    assert max(compared(shape, 1, True, torch.float32)) < 1e-6


def batch(size: int = E) -> tuple[Tensor, Tensor]:
    labels = torch.randint(10, (size, B), generator=torch_generator("labels"))
    return draws(size, B, 3, 8, 8).to(DEVICE), labels.to(DEVICE)


def stacked(
    kind: type[nn.Module], dtype: torch.dtype = torch.float32, size: int = E, **sizes: Any
) -> Ensemble:
    nets = [kind(1, generator=torch_generator(seed), dtype=dtype, **sizes) for seed in range(size)]  # type: ignore[call-arg]
    return Ensemble.of(nets, backend="batched", device=DEVICE).train()


@pytest.mark.parametrize("kind", NETWORKS)
def test_networks_have_the_losses_and_gradients_of_float64(
    kind: type[nn.Module], fused: list[tuple[Any, ...]]
) -> None:
    x, y = batch()
    expected = stacked(kind, torch.float64).gradients(x, y, F.cross_entropy)
    assert not fused  # float64 is left to torch
    found = stacked(kind).gradients(x.float(), y, F.cross_entropy)
    assert [shape for _, shape, _ in fused] == [
        (E, B, 8, 8, 4), (E, B, 8, 8, 16), (E, B, 8, 8, 16), (E, B, 4, 4, 32)
    ]  # fmt: skip
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.dtype == torch.float32
        assert float((ours.double() - theirs).norm() / theirs.norm()) < 1e-5


def test_bfloat16_is_what_the_kernels_get_in_mixed_precision(
    monkeypatch: pytest.MonkeyPatch, fused: list[tuple[Any, ...]]
) -> None:
    monkeypatch.setattr(
        rectified.RectifiedConvolution,
        "apply",
        lambda x, weight, bias, stride, skip: _seen(fused, x, weight, stride),
    )
    x, y = batch()
    stacked(SimplifiedResNet)._losses(
        stacked(SimplifiedResNet).rows, {}, x.float(), y, F.cross_entropy, mixed=True
    )
    assert {kind for kind, *_ in fused} == {(torch.bfloat16, torch.float32)}


def _seen(seen: list[tuple[Any, ...]], x: Tensor, weight: Tensor, stride: int) -> Tensor:
    seen.append(((x.dtype, weight.dtype),))
    return x[:, :, ::stride, ::stride, :1].expand(*[-1] * 4, weight.shape[1])


def test_evaluation_shares_its_images_and_is_fused_only_without_derivatives(
    fused: list[tuple[Any, ...]],
) -> None:
    ensemble, x = stacked(SimplifiedResNet), batch()[0][0].float()
    with torch.no_grad():
        outputs = ensemble(x)
    assert len(fused) == 4
    torch.testing.assert_close(outputs, ensemble(x))
    assert len(fused) == 4  # these outputs may be differentiated twice


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value encountered")  # numpy's, while it interprets ∞ − ∞
@pytest.mark.parametrize("kind", NETWORKS)
def test_a_member_that_overflows_is_found_and_does_not_touch_its_neighbours(
    kind: type[nn.Module], fused: list[tuple[Any, ...]]
) -> None:
    x, y = batch(3)
    healthy, ill = (stacked(kind, size=3) for _ in range(2))
    ill.rows[1] = float("inf")
    results = [ensemble.gradients(x.float(), y, F.cross_entropy) for ensemble in (healthy, ill)]
    assert fused
    assert not bool(results[1][0][1].isfinite())
    for before, after in zip(*results, strict=True):
        assert torch.equal(after[[0, 2]], before[[0, 2]])


@pytest.mark.slow
def test_who_looks_at_a_convolution_through_a_hook_sees_it(fused: list[tuple[Any, ...]]) -> None:
    x, y = batch()
    ensemble = stacked(SimplifiedResNet)
    expected = ensemble.gradients(x.float(), y, F.cross_entropy)
    fused.clear()
    seen: list[torch.Size] = []
    for part in (*[block.conv for block in ensemble.skeleton.blocks], ensemble.skeleton.stem[1]):
        part.register_forward_hook(lambda part, args, output: seen.append(output.shape))
    found = ensemble.gradients(x.float(), y, F.cross_entropy)
    assert len(seen) == 4
    assert not fused
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "settings",
    [{"kernel_size": 5, "padding": 2}, {"padding": 0}, {"stride": 3}, {"bias": False}, {"dilation": 2, "padding": 2},
     {"groups": 2}, {"padding_mode": "reflect"}, {"out_channels": 24}, {"in_channels": 72}],
    ids=str,
)  # fmt: skip
def test_other_convolutions_are_left_to_torch(settings: dict[str, Any], fused: list[tuple[Any, ...]]) -> None:
    x = draws(B, settings.get("in_channels", 16), 7, 7).float().to(DEVICE)
    assert_left_to_torch(nn.Conv2d(**USUAL | settings), None, x, fused)


USUAL: dict[str, Any] = {"in_channels": 16, "out_channels": 16, "kernel_size": 3, "padding": 1}


class OwnConv(nn.Conv2d):
    """By weights without their mean."""

    def forward(self, x: Tensor) -> Tensor:
        return self._conv_forward(x, self.weight - self.weight.mean(), self.bias)


class OwnShortcut(IdentityShortcut):
    """Of half the strength."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) / 2


class Tripled(nn.Module):
    """A parametrisation of weights."""

    def forward(self, weight: Tensor) -> Tensor:
        return 3 * weight


@pytest.mark.parametrize(
    ("conv", "shortcut"),
    [
        (OwnConv(**USUAL), None),
        (register_parametrization(nn.Conv2d(**USUAL), "weight", Tripled()), None),
        (register_parametrization(nn.Conv2d(**USUAL), "bias", Tripled()), None),
        (nn.Sequential(nn.Conv2d(**USUAL), nn.Hardtanh()), None),
        (nn.Conv2d(**USUAL), OwnShortcut(16, 16, 1)),
        (nn.Conv2d(**USUAL), nn.Conv2d(16, 16, 1)),
        (nn.Conv2d(**USUAL | {"out_channels": 32, "stride": 2}), nn.Conv2d(16, 32, 1, 2)),
    ],
    ids=str,
)
def test_parts_of_other_kinds_are_left_to_torch(
    conv: nn.Module, shortcut: nn.Module | None, fused: list[tuple[Any, ...]]
) -> None:
    assert_left_to_torch(conv, shortcut, draws(B, 16, 7, 7).float().to(DEVICE), fused)


class Net(nn.Module):
    """One rectified convolution."""

    def __init__(self, conv: nn.Module, shortcut: nn.Module | None, seed: int = 0) -> None:
        super().__init__()
        self.conv, self.shortcut = copy.deepcopy(conv), copy.deepcopy(shortcut)
        with torch.no_grad():
            for place, parameter in enumerate(self.parameters()):
                drawn = torch.randn(parameter.shape, generator=torch_generator("part", seed, place))
                parameter.copy_(drawn / parameter[0].numel() ** 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return rectified_convolution(x, self.conv, self.shortcut)


def assert_left_to_torch(
    conv: nn.Module, shortcut: nn.Module | None, x: Tensor, fused: list[tuple[Any, ...]]
) -> None:
    nets = [Net(conv, shortcut, seed).to(DEVICE) for seed in range(E)]
    with torch.no_grad():
        found = Ensemble.of(nets, backend="batched")(x)
    assert not fused
    torch.testing.assert_close(found, torch.stack([net(x) for net in nets]).detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("channels", [3, 8, 32])
def test_channels_that_do_not_agree_are_refused_as_torch_does(
    channels: int, fused: list[tuple[Any, ...]]
) -> None:
    ensemble = Ensemble.of(
        [Net(nn.Conv2d(**USUAL), None, seed).to(DEVICE) for seed in range(E)], backend="batched"
    )
    with pytest.raises(RuntimeError, match="expected input"), torch.no_grad():
        ensemble(draws(B, channels, 7, 7).float().to(DEVICE))
    assert not fused


def test_a_second_derivative_is_refused() -> None:
    x = draws(E, B, 3, 3, 16).float().to(DEVICE).requires_grad_()
    weight, bias = draws(E, 16, 16, 3, 3, name="weight").float(), draws(E, 16, name="bias").float()
    y = rectified.RectifiedConvolution.apply(x, weight.to(DEVICE), bias.to(DEVICE), 1, False)
    (gradient,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_derivatives_inside_the_mapping_are_left_to_torch(fused: list[tuple[Any, ...]]) -> None:
    ensemble, (x, _) = stacked(SimplifiedResNet), batch()

    def gradient(parameters: dict[str, Tensor], images: Tensor) -> Tensor:
        return torch.func.grad(lambda x: ensemble.call_member(parameters, {}, x).sum())(images)

    with ensemble._wide(fused=True):
        found = ensemble.map(gradient, (0, 0), ensemble.parameters, x.float())
    assert not fused
    for index, net in enumerate(ensemble.members()):
        images = x[index].float().requires_grad_()
        (expected,) = torch.autograd.grad(net(images).sum(), images)
        torch.testing.assert_close(found[index], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_gradients_of_inputs_with_few_channels(fused: list[tuple[Any, ...]]) -> None:
    ensemble, (x, y) = stacked(SimplifiedPlnNet), batch()
    images = x.float().requires_grad_()
    losses, _ = ensemble._losses(ensemble.rows, {}, images, y, F.cross_entropy)
    assert fused
    (found,) = torch.autograd.grad(losses.sum(), images)
    exact = stacked(SimplifiedPlnNet, torch.float64)
    leaf = x.clone().requires_grad_()
    (expected,) = torch.autograd.grad(exact._losses(exact.rows, {}, leaf, y, F.cross_entropy)[0].sum(), leaf)
    assert float((found.double() - expected).norm() / expected.norm()) < 1e-5


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", NETWORKS)
def test_bfloat16_on_a_gpu_errs_no_more_than_torch_does_and_repeats_its_bits(
    kind: type[nn.Module], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = batch()
    exact = stacked(kind, torch.float64).gradients(x, y, F.cross_entropy)

    def errors() -> list[float]:
        ensemble = stacked(kind)
        found = [ensemble.gradients(x.float(), y, F.cross_entropy, mixed=True) for _ in range(2)]
        assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
        return [float((ours - theirs).norm()) for ours, theirs in zip(found[0], exact, strict=True)]

    fused = errors()
    monkeypatch.setattr(rectified, "available", lambda device: False)
    for ours, theirs in zip(fused, errors(), strict=True):
        assert ours <= 1.5 * theirs + 1e-6
