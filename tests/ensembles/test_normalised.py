"""Normalised convolutions by Triton's kernels: what float64 gives one network at a time, in value and gradient.

Without a GPU the kernels are interpreted (tests/conftest.py), which knows float32 and float16 but not bfloat16.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.parametrize import register_parametrization

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


def one_by_one(x: Tensor, weight: Tensor, scale: Tensor, shift: Tensor, *others: Any) -> Tensor:
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
) -> dict[str, float]:
    """Relative errors of outputs, gradients and statistics; ``passing`` are a shortcut's channels and stride."""
    channels, filters, height, width = shape
    exact = [
        draws(E, B, height, width, channels),
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
        exact.append(draws(E, B, *sides, passed_channels, name="passed"))
    exact = [tensor.to(dtype).double() for tensor in exact]
    leaves = [tensor.to(torch.float32 if 0 < place < 4 else dtype) for place, tensor in enumerate(exact)]
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
    ((16, 16, 6, 8), 1, (16, 1)), ((16, 16, 6, 8), 1, None), ((16, 16, 2, 2), 1, (8, 1)),
    ((16, 16, 3, 8), 1, (16, 1)),
    ((4, 16, 5, 7), 1, None), ((16, 32, 8, 8), 2, (16, 2)), ((16, 32, 7, 5), 2, None),
    ((32, 64, 4, 4), 2, (32, 2)), ((64, 64, 3, 3), 1, (16, 2)), ((8, 32, 1, 2), 1, (32, 1)),
]  # fmt: skip


@pytest.mark.parametrize(("shape", "stride", "passing"), SHAPES)
def test_values_gradients_and_statistics_are_those_of_float64(
    shape: tuple[int, int, int, int], stride: int, passing: tuple[int, int] | None
) -> None:
    errors = compared(shape, stride, torch.float32, passing=passing)
    assert max(errors.values()) < 1e-6, errors


@pytest.mark.parametrize("passing", [None, (16, 1)])
def test_evaluation_takes_the_running_statistics_and_leaves_them(passing: tuple[int, int] | None) -> None:
    errors = compared((16, 16, 4, 4), 1, torch.float32, passing=passing, training=False)
    assert max(errors.values()) < 1e-6, errors


def test_half_precision_rounds_tensors_and_not_statistics() -> None:
    errors = compared((16, 32, 8, 8), 2, torch.float16, passing=(16, 2))
    assert max(errors.values()) < 2**-8  # of which float16's rounding of one number is an eighth
    assert max(errors[name] for name in ("mean", "variance")) < 2e-4


@pytest.mark.parametrize("numbers", [64, 2**14])
@pytest.mark.parametrize("shape", [(16, 16, 6, 8), (16, 16, 5, 8)], ids=["by blocks", "by pixels"])
def test_sums_over_the_batch_do_not_depend_on_its_parts(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int, int, int], numbers: int
) -> None:
    from skiplab.ensembles import normalised_kernels, wide_blocks, wide_kernels

    for name in ("NORMALISED", "SUMMED", "FIELDS"):
        monkeypatch.setattr(normalised_kernels, name, (numbers, 4))
    monkeypatch.setattr(normalised_kernels, "ADDED", min(numbers, 4096))
    monkeypatch.setattr(wide_blocks, "MAPPED", (16, 4, 1))
    monkeypatch.setitem(wide_kernels.TILES, "forward", {16: (16, 4, 1)})
    errors = compared(shape, 1, torch.float32, passing=(16, 1))
    assert max(errors.values()) < 1e-6, errors


@pytest.mark.parametrize("tile", [16, 128])
@pytest.mark.parametrize("height", [6, 5], ids=["by blocks", "by pixels"])
def test_a_mean_far_above_the_deviation_does_no_harm(
    height: int, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from skiplab.ensembles import normalised_kernels, wide_blocks, wide_kernels

    monkeypatch.setattr(wide_blocks, "MAPPED", (tile, 4, 1))
    monkeypatch.setitem(wide_kernels.TILES, "forward", {16: (tile, 4, 1)})
    x = (draws(E, B, height, 6, 16).float() + 300).to(DEVICE)
    kernels = torch.zeros(E, 9, 16, 16, device=DEVICE)
    kernels[:, 4] = torch.eye(16)
    z, moments, tile = wide_kernels.fields(x, kernels, 1, True, "ieee")
    assert torch.equal(z, x)
    assert wide_blocks.fit(x, 16, 1) == (height == 6)
    running = torch.zeros(E, 16, device=DEVICE), torch.ones(E, 16, device=DEVICE)
    standard = normalised_kernels.statistics(
        moments, tile, B * height * 6, EPS, 1.0, *running, *(torch.ones_like(running[0]) for _ in range(2))
    )
    exact = x.double().flatten(1, 3)
    assert float((standard[:, 0] - exact.mean(1)).abs().max()) < 300 * 2**-21
    variance = exact.var(1, correction=0)
    torch.testing.assert_close(standard[:, 1].double(), (variance + EPS).rsqrt(), rtol=2e-5, atol=0)
    torch.testing.assert_close(running[1].double(), exact.var(1), rtol=4e-5, atol=0)


@pytest.mark.parametrize("places", [1, 4])
def test_moments_of_parts_are_put_together_as_in_float64(
    places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts whose means are a few roundings apart: their sum in float32 is off by more than they are."""
    from skiplab.ensembles import normalised_kernels

    monkeypatch.setattr(normalised_kernels, "ADDED", normalised_kernels.CHUNK)  # one part after the other
    parts, tile, mean = 64 // places, 16, 300.0
    pixels = parts * tile - 5  # at each place; the last part has fewer
    steps = torch.randint(4, (parts, 1, places, 16), generator=torch_generator("steps"))
    means = mean + steps.double() * 2**-15  # the distance of two numbers in float32 there
    within = tile * 2.0**-32 * draws(parts, 1, places, 16, name="within").abs()
    moments = torch.stack([means, within.float().double()], 2)
    counts = torch.tensor([tile] * (parts - 1) + [tile - 5], dtype=torch.float64)[:, None, None, None]
    every = pixels * places
    centre = (counts * means).sum((0, 2)) / every
    squares = (moments[:, :, 1] + counts * (means - centre[:, None]).square()).sum((0, 2))
    ones = torch.ones(1, 16, device=DEVICE)
    running = torch.zeros_like(ones), torch.ones_like(ones)
    standard = normalised_kernels.statistics(
        moments.float().to(DEVICE), tile, every, 0.0, 1.0, *running, ones, ones
    ).cpu()
    assert float((standard[:, 0].double() - centre).abs().max()) <= 2**-16  # the nearest number in float32
    torch.testing.assert_close(standard[:, 1].double(), (squares / every).rsqrt(), rtol=1e-5, atol=0)
    torch.testing.assert_close(running[1].cpu().double(), squares / (every - 1), rtol=1e-5, atol=0)


def batch(size: int = E) -> tuple[Tensor, Tensor]:
    labels = torch.randint(10, (size, B), generator=torch_generator("labels"))
    return draws(size, B, 3, 8, 8).to(DEVICE), labels.to(DEVICE)


def stacked(
    dtype: torch.dtype = torch.float32, size: int = E, *, skips: bool = True, frozen: bool = False
) -> Ensemble:
    nets = [ResNet(1, generator=torch_generator(seed), skips=skips, dtype=dtype) for seed in range(size)]
    for part in [part for net in nets for part in net.modules() if isinstance(part, nn.BatchNorm2d)]:
        number = part.num_features
        with torch.no_grad():
            part.weight.copy_(draws(number, name="scale"))
            part.bias.copy_(draws(number, name="shift"))
        part.weight.requires_grad_(not frozen)
    return Ensemble.of(nets, backend="batched", device=DEVICE).train()


def assert_near(found: list[Tensor], expected: list[Tensor], tolerance: float) -> None:
    for ours, theirs in zip(found, expected, strict=True):
        assert float((ours.double() - theirs.double()).norm()) <= tolerance * float(theirs.double().norm())


@pytest.mark.parametrize(
    ("skips", "frozen"), [(True, False), pytest.param(False, True, marks=pytest.mark.slow)]
)
def test_networks_have_the_losses_gradients_and_buffers_of_float64(
    skips: bool, frozen: bool, fused: list[tuple[Any, ...]]
) -> None:
    x, y = batch()
    results = []
    for dtype in (torch.float64, torch.float32):
        assert not fused  # float64 is left to torch
        ensemble = stacked(dtype, skips=skips, frozen=frozen)
        found = ensemble.gradients(x.to(dtype), y, F.cross_entropy)
        assert found[2].dtype == dtype
        results.append([*found, *ensemble.fixed.values()])
    assert [shape for _, shape, _ in fused] == [
        (E, B, 8, 8, 4), (E, B, 8, 8, 16), (E, B, 8, 8, 16), (E, B, 8, 8, 16), (E, B, 4, 4, 32), (E, B, 4, 4, 32),
        (E, B, 2, 2, 64),
    ]  # fmt: skip
    assert all(
        int(count) == 1
        for name in ensemble.fixed
        if name.endswith("tracked")
        for count in ensemble.fixed[name]
    )
    assert_near(results[1], results[0], 1e-5)


def test_bfloat16_is_what_the_kernels_get_in_mixed_precision(
    monkeypatch: pytest.MonkeyPatch, fused: list[tuple[Any, ...]]
) -> None:
    def seen(x: Tensor, weight: Tensor, *others: Any) -> Tensor:
        stride, passed = others[5], others[4]
        fused.append((x.dtype, weight.dtype, others[0].dtype, x.dtype if passed is None else passed.dtype))
        return x[:, :, ::stride, ::stride, :1].expand(*[-1] * 4, weight.shape[1])

    monkeypatch.setattr(normalised.NormalisedConvolution, "apply", seen)
    (x, y), ensemble = batch(), stacked()
    ensemble._losses(ensemble.rows, ensemble.fixed, x.float(), y, F.cross_entropy, mixed=True)
    assert len(fused) == 7
    assert set(fused) == {(torch.bfloat16, torch.float32, torch.float32, torch.bfloat16)}


def test_evaluation_is_fused_only_without_derivatives_and_leaves_the_buffers(
    fused: list[tuple[Any, ...]],
) -> None:
    ensemble, x = stacked().train(False), batch()[0][0].float()
    before = {name: tensor.clone() for name, tensor in ensemble.fixed.items()}
    with torch.no_grad():
        outputs = ensemble(x)
    assert len(fused) == 7
    torch.testing.assert_close(outputs, ensemble(x), rtol=1e-4, atol=1e-5)
    assert len(fused) == 7  # these outputs may be differentiated twice
    assert all(torch.equal(tensor, before[name]) for name, tensor in ensemble.fixed.items())


@pytest.mark.filterwarnings("ignore:invalid value encountered")  # numpy's, while it interprets NaNs
@pytest.mark.parametrize("training", [False, True])
def test_nan_goes_where_torch_lets_it_go(training: bool) -> None:
    x = draws(E, B, 5, 4, 16)  # not by blocks, where it also reaches a window's neighbours
    x[0, 1, 2, 2, 3] = float("nan")
    weight, vectors = draws(E, 16, 16, 3, 3, name="weight"), draws(4, E, 16, name="vectors").abs()
    found = []
    for function, dtype in ((one_by_one, torch.float64), (NormalisedConvolution.apply, torch.float32)):
        tensors = [tensor.to(DEVICE, dtype).requires_grad_() for tensor in (x, weight, *vectors[:2])]
        running = [tensor.to(DEVICE, dtype, copy=True) for tensor in vectors[2:]]
        y = function(*tensors, *running, tensors[0], 1, 1, training, EPS, MOMENTUM)
        found.append([y, *torch.autograd.grad(y.sum(), tensors), *running])
    for theirs, ours in zip(*found, strict=True):
        assert torch.equal(ours.isnan(), theirs.isnan())
        assert not bool(ours[1].isnan().any())


@pytest.mark.filterwarnings(
    "ignore:(invalid value|overflow) encountered"
)  # numpy's, while it interprets ∞ − ∞
@pytest.mark.slow
def test_a_member_that_overflows_is_found_and_does_not_touch_its_neighbour(
    fused: list[tuple[Any, ...]],
) -> None:
    x, y = batch()
    healthy, ill = stacked(), stacked()
    ill.rows[1] = float("inf")
    results = [
        [*ensemble.gradients(x.float(), y, F.cross_entropy), *ensemble.fixed.values()]
        for ensemble in (healthy, ill)
    ]
    assert len(fused) == 14
    assert not bool(results[1][0][1].isfinite())
    for before, after in zip(*results, strict=True):
        assert torch.equal(after[0], before[0])


@pytest.mark.slow
def test_who_looks_at_a_part_through_a_hook_sees_it(fused: list[tuple[Any, ...]]) -> None:
    x, y = batch()
    expected = stacked().gradients(x.float(), y, F.cross_entropy)
    fused.clear()
    ensemble = stacked()
    seen: list[torch.Size] = []
    first, second, third = ensemble.skeleton.blocks
    watched = (
        ensemble.skeleton.stem[1],
        first.norm1,
        first.conv2,
        second.conv1,
        second.shortcut,
        third.norm1,
    )
    for part in watched:
        part.register_forward_hook(lambda part, args, output: seen.append(output.shape))
    found = ensemble.gradients(x.float(), y, F.cross_entropy)
    assert len(seen) == 6
    assert len(fused) == 1
    assert_near(list(found), list(expected), 1e-5)


class Net(nn.Module):
    """One normalised convolution, perhaps with a shortcut, of other settings and kinds than usual."""

    def __init__(
        self,
        seed: int,
        conv: dict[str, Any],
        norm: dict[str, Any],
        shortcut: tuple[int, int, int] | None = None,
        *,
        passed: Callable[[Tensor], Tensor] = lambda x: x,
    ) -> None:
        super().__init__()
        usual = {"in_channels": 16, "out_channels": 16, "kernel_size": 3, "padding": 1, "bias": False}
        usual |= {"kind": nn.Conv2d} | conv
        norm = {"kind": nn.BatchNorm2d, "num_features": usual["out_channels"]} | norm
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.conv = usual.pop("kind")(**usual)
        self.norm = norm.pop("kind")(**norm)
        self.shortcut = None if shortcut is None else IdentityShortcut(*shortcut)
        self.passed = passed

    def forward(self, x: Tensor) -> Tensor:
        return normalised_convolution(x, self.conv, self.norm, self.shortcut, self.passed(x))


class OwnNorm(nn.BatchNorm2d):
    """Of which nobody knows what it computes."""


class OwnConv(nn.Conv2d):
    """A convolution by standardised weights, as some networks without normalisation have it."""

    def forward(self, x: Tensor) -> Tensor:
        apart = self.weight - self.weight.mean((1, 2, 3), keepdim=True)
        return self._conv_forward(x, apart / apart.std((1, 2, 3), keepdim=True), None)


class Tripled(nn.Module):
    """A parametrisation of weights."""

    def forward(self, weight: Tensor) -> Tensor:
        return 3 * weight + 1


def parametrised(**settings: Any) -> nn.Module:
    conv = nn.Conv2d(**settings)
    register_parametrization(conv, "weight", Tripled())
    return conv


def in_a_row(**settings: Any) -> nn.Module:
    return nn.Sequential(nn.Conv2d(**settings), nn.Hardtanh())


def _named(value: object) -> str:
    """A case's name, without a function's address: it has to be the same in every worker of the test run."""
    if isinstance(value, dict):
        return (
            " ".join(f"{key}={getattr(entry, '__name__', entry)}" for key, entry in value.items())
            or "as it is"
        )
    return str(value)


@pytest.mark.parametrize(
    ("conv", "norm", "shortcut"),
    [
        ({"bias": True}, {}, None),
        ({"out_channels": 24}, {}, None),
        ({"padding": 0}, {}, None),
        ({"kind": OwnConv}, {}, None),
        ({"kind": parametrised}, {}, None),
        ({"kind": in_a_row}, {}, None),
        ({}, {"affine": False}, None),
        ({}, {"track_running_stats": False}, None),
        ({}, {"kind": OwnNorm}, None),
        ({}, {"kind": nn.InstanceNorm2d}, None),
        ({"in_channels": 32}, {}, (32, 16, 1)),
    ],
    ids=_named,
)
def test_what_the_kernels_do_not_know_is_left_to_torch(
    conv: Any, norm: Any, shortcut: Any, fused: list[tuple[Any, ...]]
) -> None:
    x = draws(B, conv.get("in_channels", 16), 6, 6).float().to(DEVICE)
    assert_left_to_torch([Net(seed, conv, norm, shortcut).to(DEVICE) for seed in range(E)], x, fused)


def assert_left_to_torch(
    nets: list[Net], x: Tensor, fused: list[tuple[Any, ...]], tolerance: float = 1e-4
) -> None:
    with torch.no_grad():
        found = Ensemble.of(nets, backend="batched").train()(x)
        expected = torch.stack([net.train()(x) for net in nets])
    assert not fused
    torch.testing.assert_close(found, expected, rtol=tolerance, atol=tolerance / 10)


@pytest.mark.parametrize(
    "passed",
    [lambda x: x[..., :1, :1], lambda x: x[:1], lambda x: x[0], lambda x: x[0, 0, 0], lambda x: x.double()],
    ids=["one pixel", "one image", "without the batch", "one row", "another type"],
)
def test_what_a_shortcut_passes_is_added_as_torch_adds_it(
    passed: Callable[[Tensor], Tensor], fused: list[tuple[Any, ...]]
) -> None:
    nets = [Net(seed, {}, {}, (16, 16, 1), passed=passed).to(DEVICE) for seed in range(E)]
    assert_left_to_torch(nets, draws(B, 16, 6, 6).float().to(DEVICE), fused)


def test_what_a_shortcut_passes_is_counted_as_the_kernels_store_it(
    fused: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    nets = [Net(seed, {}, {}, (3, 16, 1), passed=lambda x: x[:, :3]).to(DEVICE) for seed in range(E)]
    x = draws(B, 16, 4, 4).float().to(DEVICE)
    stored = B * 4 * 4 * 4  # three channels and one of zeros
    monkeypatch.setattr(normalised, "LARGEST", stored - 1)
    assert_left_to_torch(nets, x, fused)
    monkeypatch.setattr(normalised, "LARGEST", stored)
    with torch.no_grad():
        Ensemble.of(nets, backend="batched").train()(x)
    assert len(fused) == 1


def test_vectors_in_bfloat16_are_left_to_torch(fused: list[tuple[Any, ...]]) -> None:
    nets = [Net(seed, {}, {}).to(DEVICE, torch.bfloat16) for seed in range(E)]
    assert_left_to_torch(nets, draws(B, 16, 6, 6).to(DEVICE, torch.bfloat16), fused, tolerance=2**-5)


@pytest.mark.parametrize(
    ("channels", "norm", "words"),
    [
        (8, {}, "expected input"),
        (32, {}, "expected input"),
        (3, {}, "expected input"),
        (16, {"num_features": 8}, "running_mean should contain"),
        (16, {"num_features": 32}, "running_mean should contain"),
    ],
)
def test_channels_that_do_not_agree_are_refused_as_torch_does(
    channels: int, norm: dict[str, Any], words: str, fused: list[tuple[Any, ...]]
) -> None:
    ensemble = Ensemble.of([Net(seed, {}, norm).to(DEVICE) for seed in range(E)], backend="batched")
    with pytest.raises(RuntimeError, match=words), torch.no_grad():
        ensemble.train()(draws(B, channels, 6, 6).float().to(DEVICE))
    assert not fused


@pytest.mark.parametrize(("momentum", "training"), [(0.3, True), (None, False)])
def test_other_momenta_and_shortcuts_that_widen(
    momentum: float | None, training: bool, fused: list[tuple[Any, ...]]
) -> None:
    settings = (
        {"out_channels": 32, "stride": 2},
        {"momentum": momentum, "eps": 1e-3},
        (16, 32, 2),
    )
    nets = [Net(seed, *settings).to(DEVICE).train(training) for seed in range(E)]
    x = draws(B, 16, 5, 6).float().to(DEVICE)
    ensemble = Ensemble.of(nets, backend="batched").train(training)
    with torch.no_grad():
        found = ensemble(x)
    assert len(fused) == 1
    torch.testing.assert_close(found, torch.stack([net(x) for net in nets]).detach(), rtol=1e-4, atol=1e-5)
    for name, buffer in ensemble.fixed.items():
        torch.testing.assert_close(buffer, torch.stack([dict(net.named_buffers())[name] for net in nets]))


def test_running_statistics_that_are_not_tracked_any_more_stay(fused: list[tuple[Any, ...]]) -> None:
    nets = [Net(seed, {}, {}).to(DEVICE) for seed in range(E)]
    for net in nets:
        net.norm.track_running_stats = False  # after it was built: its buffers are there
    ensemble = Ensemble.of(nets, backend="batched").train()
    before = {name: buffer.clone() for name, buffer in ensemble.fixed.items()}
    with torch.no_grad():
        ensemble(draws(B, 16, 6, 6).float().to(DEVICE))
    assert not fused
    assert before
    assert all(torch.equal(buffer, before[name]) for name, buffer in ensemble.fixed.items())


def test_one_value_per_channel_is_refused_as_torch_does(fused: list[tuple[Any, ...]]) -> None:
    ensemble = Ensemble.of([Net(seed, {}, {}).to(DEVICE) for seed in range(E)], backend="batched")
    with pytest.raises(ValueError, match="more than 1 value per channel"), torch.no_grad():
        ensemble.train()(draws(1, 16, 1, 1).float().to(DEVICE))
    assert not fused


def test_derivatives_inside_the_mapping_are_left_to_torch(fused: list[tuple[Any, ...]]) -> None:
    ensemble, (x, _) = stacked().train(False), batch()

    def gradient(parameters: dict[str, Tensor], fixed: dict[str, Tensor], images: Tensor) -> Tensor:
        return torch.func.grad(lambda x: ensemble.call_member(parameters, fixed, x).sum())(images)

    with ensemble._wide(fused=True):
        found = ensemble.map(gradient, (0, 0, 0), ensemble.parameters, ensemble.fixed, x.float())
    assert not fused
    for index, net in enumerate(ensemble.members()):
        images = x[index].float().requires_grad_()
        (expected,) = torch.autograd.grad(net.eval()(images).sum(), images)
        torch.testing.assert_close(found[index], expected, rtol=1e-4, atol=1e-6)


def test_derivatives_by_what_a_shortcut_passes_are_left_to_torch(fused: list[tuple[Any, ...]]) -> None:
    nets = [Net(seed, {}, {}, (16, 16, 1)).to(DEVICE).eval() for seed in range(E)]
    ensemble = Ensemble.of(nets, backend="batched").train(False)
    x = draws(B, 16, 6, 6).float().to(DEVICE)

    def gradient(parameters: dict[str, Tensor], fixed: dict[str, Tensor]) -> Tensor:
        def loss(passed: Tensor) -> Tensor:
            ensemble.skeleton.passed = lambda x: passed
            return ensemble.call_member(parameters, fixed, x).square().sum()

        return torch.func.grad(loss)(x)

    with ensemble._wide(fused=True):
        found = ensemble.map(gradient, (0, 0), ensemble.parameters, ensemble.fixed)
    assert not fused
    for index, net in enumerate(nets):
        passed = x.clone().requires_grad_()
        net.passed = lambda x, passed=passed: passed
        (expected,) = torch.autograd.grad(net(x).square().sum(), passed)
        torch.testing.assert_close(found[index], expected, rtol=1e-4, atol=1e-5)


def test_a_second_derivative_is_refused() -> None:
    x = draws(E, B, 3, 3, 16).float().to(DEVICE).requires_grad_()
    vectors = draws(4, E, 16, name="vectors").abs().float().to(DEVICE)
    weight = draws(E, 16, 16, 3, 3, name="weight").float().to(DEVICE)
    y = NormalisedConvolution.apply(x, weight, *vectors, None, 1, 1, True, EPS, MOMENTUM)
    (gradient,) = torch.autograd.grad(y.square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        gradient.sum().backward()


def test_vectors_whose_numbers_lie_apart_are_read_and_changed_where_they_are() -> None:
    x, weight = draws(E, B, 3, 3, 16), draws(E, 16, 16, 3, 3, name="weight")
    vectors = draws(4, 16, E, name="vectors").abs()
    results = []
    for function, dtype in ((one_by_one, torch.float64), (NormalisedConvolution.apply, torch.float32)):
        apart = [each.to(DEVICE, dtype, copy=True).T for each in vectors]
        assert all(each.stride(1) == E for each in apart)
        y = function(x.to(DEVICE, dtype), weight.to(DEVICE, dtype), *apart, None, 1, 1, True, EPS, MOMENTUM)
        results.append([y, *apart])
    assert_near(*reversed(results), 1e-6)


@pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered")  # numpy's, as it interprets
def test_pixels_that_a_last_tile_does_not_have_add_nothing() -> None:
    """Not even where (0 − mean)/deviation overflows, which times a gradient of 0 is NaN."""
    from skiplab.ensembles import normalised_kernels

    z = torch.full((1, 1, 3, 3, 16), 3e38, device=DEVICE)
    mean_rate_scale_shift = torch.tensor([3e38, 300.0, 1.0, 1.0], device=DEVICE)
    standard = mean_rate_scale_shift[None, :, None].repeat(1, 1, 16)
    sums, _ = normalised_kernels.gradient_sums(torch.ones_like(z), None, z, standard)
    assert torch.equal(sums, torch.tensor([9.0, 0.0], device=DEVICE)[None, :, None].repeat(1, 1, 16))


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("skips", [True, False])
def test_bfloat16_on_a_gpu_errs_no_more_than_torch_does_and_repeats_its_bits(
    skips: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Over many networks and images: how far one network's gradient is off is mostly chance.
    size, images = 8, 16
    x = draws(size, images, 3, 16, 16).to(DEVICE)
    y = torch.randint(10, (size, images), generator=torch_generator("labels")).to(DEVICE)
    exact = stacked(torch.float64, size=size, skips=skips).gradients(x, y, F.cross_entropy)

    def errors() -> list[Tensor]:
        nets = [stacked(size=size, skips=skips) for _ in range(2)]
        found = [each.gradients(x.float(), y, F.cross_entropy, mixed=True) for each in nets]
        assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))
        return [
            (ours - theirs).flatten(1).norm(dim=1)
            for ours, theirs in zip(found[0][1:], exact[1:], strict=True)
        ]

    fused = errors()
    monkeypatch.setattr(rectified, "available", lambda device: False)
    for ours, theirs in zip(fused, errors(), strict=True):
        assert float((ours / theirs).log().mean().exp()) < 1.2
