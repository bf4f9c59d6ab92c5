"""Wide images: convolutions, normalisations and concatenations of all members give what torch's vmap gives."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures.activations import CReLU
from skiplab.architectures.thin import KINDS, ThinNet
from skiplab.ensembles import Ensemble, wide
from skiplab.ensembles.wide import wide_images
from skiplab.randomness import torch_generator

E, B, SIDE = 3, 4, 6


def draws(*shape: int, name: str = "x") -> Tensor:
    return torch.randn(*shape, generator=torch_generator(name, *shape), dtype=torch.float64)


def assert_both_ways_agree(
    function: Callable[..., Tensor], in_dims: tuple[int | None, ...], *args: Any
) -> None:
    """Outputs, gradients and whatever changed in place, with torch's rules and with ours."""
    found = []
    for ours in (False, True):
        tensors = [arg.clone() for arg in args]
        mapped = [tensor for tensor, dim in zip(tensors, in_dims, strict=True) if dim is not None]
        leaves = [tensor.requires_grad_() for tensor in mapped if tensor.ndim > 2]
        run = torch.vmap(function, in_dims=in_dims)
        if ours:
            with wide_images():
                output = run(*tensors)
        else:
            output = run(*tensors)
        weights = draws(*output.shape, name="weights")
        found.append([output, *torch.autograd.grad((output * weights).sum(), leaves), *tensors])
    for theirs, mine in zip(*found, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize(("channels", "filters"), [(8, 16), (6, 10), (2, 8), (8, 4), (130, 6)])
@pytest.mark.parametrize(
    "settings", [{}, {"padding": 1}, {"stride": 2, "padding": 1}, {"padding": "same", "dilation": 2}], ids=str
)
@pytest.mark.parametrize("bias", [False, True])
def test_convolutions(groups: int, channels: int, filters: int, settings: dict[str, Any], bias: bool) -> None:
    x, weight = draws(E, B, channels, SIDE, SIDE), draws(E, filters, channels // groups, 3, 3)

    def function(x: Tensor, weight: Tensor, b: Tensor) -> Tensor:
        return F.conv2d(x, weight, b if bias else None, groups=groups, **settings)

    assert_both_ways_agree(function, (0, 0, 0), x, weight, draws(E, filters))


@pytest.mark.parametrize("in_dims", [(None, 0), (0, None), (1, 0), (0, 2)])
def test_operands_that_members_share_or_that_lie_otherwise(in_dims: tuple[int | None, int | None]) -> None:
    x, weight = draws(E, B, 5, SIDE, SIDE), draws(E, 7, 5, 3, 3)
    args = [t[0] if dim is None else t.movedim(0, dim) for t, dim in zip((x, weight), in_dims, strict=True)]
    assert_both_ways_agree(lambda x, w: torch.conv2d(x, w, padding=1), in_dims, *args)


def test_what_is_not_mapped_at_all() -> None:
    kernel = draws(2, 3, 3, 3, name="kernel")
    picture = draws(1, 3, SIDE, SIDE, name="picture")
    assert_both_ways_agree(
        lambda x: x * torch.conv2d(picture, kernel).sum(), (0,), draws(E, B, 2, SIDE, SIDE)
    )


def test_gradients_of_inputs_that_members_share() -> None:
    class Padded(nn.Module):
        """Begins with operations on the inputs alone."""

        def __init__(self, seed: int) -> None:
            super().__init__()
            self.kernel = nn.Parameter(draws(2, 6, 3, 3, name=f"kernel {seed}"))
            self.conv = nn.Conv2d(1, 1, 1)  # makes the network a convolutional one

        def forward(self, x: Tensor) -> Tensor:
            x = torch.cat((F.pad(x, (1, 1))[..., ::2, ::2], F.pad(x, (1, 1))[..., 1::2, ::2]), 1)
            return F.conv2d(F.batch_norm(x, None, None, training=True), self.kernel)

    x = draws(B, 3, SIDE, SIDE).requires_grad_()
    found = []
    for backend in ("loop", "batched"):
        outputs = Ensemble.of([Padded(seed).double() for seed in range(E)], backend=backend)(x)
        (gradient,) = torch.autograd.grad((outputs * draws(*outputs.shape, name="weights")).sum(), x)
        found.append((outputs, gradient))
    for loop, batched in zip(*found, strict=True):
        torch.testing.assert_close(batched, loop, rtol=1e-9, atol=1e-9)


def test_derivatives_inside_the_mapping_are_left_to_torch() -> None:
    x, weight = draws(E, B, 5, SIDE, SIDE), draws(E, 7, 5, 3, 3)

    def gradient(x: Tensor, weight: Tensor) -> Tensor:
        return torch.func.grad(lambda w: torch.conv2d(F.pad(x, (1, 1)), w).square().sum())(weight)

    def gradient_of_images(x: Tensor, weight: Tensor) -> Tensor:
        return torch.func.grad(lambda x: torch.conv2d(F.pad(x, (1, 1)), weight).square().sum())(x)

    assert_both_ways_agree(gradient, (0, 0), x, weight)
    assert_both_ways_agree(gradient_of_images, (0, 0), x, weight)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("shape", [(5, SIDE, SIDE), (8, SIDE, SIDE), (5,), (5, 7)], ids=str)
def test_batch_normalisations_and_their_running_statistics(
    training: bool, affine: bool, shape: tuple[int, ...]
) -> None:
    vectors = [draws(E, shape[0], name=name) for name in ("mean", "weight", "bias")]

    def function(x: Tensor, mean: Tensor, var: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        scale = (weight, bias) if affine else (None, None)
        return F.batch_norm(x, mean, var, *scale, training=training, momentum=0.3, eps=1e-3)

    args = (draws(E, B, *shape), vectors[0], draws(E, shape[0], name="var").exp(), *vectors[1:])
    assert_both_ways_agree(function, (0,) * 5, *args)


def test_a_normalisation_without_running_statistics() -> None:
    assert_both_ways_agree(
        lambda x: F.batch_norm(x, None, None, training=True), (0,), draws(E, B, 5, SIDE, SIDE)
    )


@pytest.mark.parametrize("dim", [0, 1, 2, -3, -1])
def test_concatenations(dim: int) -> None:
    assert_both_ways_agree(
        lambda x, y: torch.cat((x, y), dim), (0, 0), draws(E, B, 5, 4, 4), draws(E, B, 5, 4, 4, name="y")
    )
    assert_both_ways_agree(CReLU(), (0,), draws(E, B, 5, SIDE, SIDE))


@pytest.mark.parametrize(
    "pads", [(1, 2), (1, 2, 3, 4), (1, 2, 3, 4, 5, 6), (0, 0, 0, 0, 0, 3), (1, 0, 0, 0, 0, 0, 2, 1)], ids=str
)
def test_paddings(pads: tuple[int, ...]) -> None:
    assert_both_ways_agree(lambda x: F.pad(x, pads, value=2.0), (0,), draws(E, B, 5, SIDE, SIDE))


def test_paddings_of_other_kinds_and_tensors() -> None:
    assert_both_ways_agree(lambda x: F.pad(x, (1, 2, 2, 1), mode="reflect"), (0,), draws(E, B, 5, SIDE, SIDE))
    assert_both_ways_agree(lambda x: F.pad(x, (1, 2)), (0,), draws(E, B, 5))


@pytest.mark.parametrize(
    "index",
    [
        (..., slice(None, None, 2), slice(None, None, 3)),
        (..., slice(1, -1), slice(2)),
        0,
        (slice(2), 1),
        (..., 1, 2),
    ],
    ids=str,
)
def test_parts_of_images(index: Any) -> None:
    assert_both_ways_agree(lambda x: x[index], (0,), draws(E, B, 5, SIDE, SIDE))


@pytest.mark.parametrize(
    "after",
    [
        lambda x: F.group_norm(x, 2),
        lambda x: F.instance_norm(x),
        lambda x: F.layer_norm(x, x.shape[1:]),
        lambda x: F.avg_pool2d(x, 2),
        lambda x: F.max_pool2d(x, 2),
        lambda x: F.interpolate(x, scale_factor=2),
        lambda x: F.pixel_shuffle(x[:, :4], 2),
        lambda x: x.view(x.shape[0], -1),
        lambda x: x.view((len(x), 2, -1)).mean(1),
        lambda x: x.flatten(2).transpose(1, 2),
    ],
)
def test_what_follows_a_convolution_need_not_know_of_the_layout(after: Callable[[Tensor], Tensor]) -> None:
    x, weight = draws(E, B, 6, SIDE, SIDE), draws(E, 6, 6, 3, 3)
    assert_both_ways_agree(lambda x, w: after(torch.conv2d(x, w, padding=1)), (0, 0), x, weight)


def test_images_stay_in_channels_last_order_from_one_operation_to_the_next() -> None:
    info = SimpleNamespace(batch_size=E)
    x, weight = draws(E, B, 8, SIDE, SIDE), draws(E, 8, 8, 3, 3)

    def lies_wide(tensor: Tensor, dim: int) -> bool:
        return tensor.movedim(dim, 0).permute(1, 3, 4, 0, 2).is_contiguous()  # (B, H, W, E, C)

    y, at = wide._Convolution.vmap(info, (0, 0, None), x, weight, None, 1, 1, 1, 1)
    assert lies_wide(y, at)
    z, at = wide._Normalisation.vmap(info, (at, *[None] * 7), y, None, None, None, None, True, 0.1, 1e-5)
    assert lies_wide(z, at)
    joined, at = wide._Concatenation.vmap(info, (at, at), torch.relu(z), torch.relu(-z))
    assert lies_wide(joined, at)
    padded, at_first = wide._Padding.vmap(info, (at, None, None), joined, (0, 0, 0, 0, 0, 4), None)
    assert lies_wide(padded, at_first)
    # Other numbers of channels: zeros were put beside them and dropped again, in the order of memory.
    y, at = wide._Convolution.vmap(info, (0, 0, None), x[:, :, :6], weight[:, :5, :6], None, 1, 1, 1, 1)
    assert y.movedim(at, 0).shape == (E, B, 5, SIDE, SIDE)
    assert y.movedim(at, 0).permute(1, 3, 4, 0, 2).stride()[3:] == (8, 1)
    # What lies so already is not copied.
    assert wide._wide(padded).data_ptr() == padded.data_ptr()


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_whole_networks_agree_with_a_loop_in_mixed_precision_too(kind: str, mixed: bool) -> None:
    x, y = draws(E, 8, 3, 32, 32), torch.randint(10, (E, 8), generator=torch_generator("labels"))

    def results(backend: str, dtype: torch.dtype, *, mixed: bool) -> list[Tensor]:
        nets = [ThinNet(2, generator=torch_generator(s), kind=kind, dtype=dtype) for s in range(E)]
        ensemble = Ensemble.of(nets, backend=backend).train()
        losses, outputs, gradient = ensemble.gradients(x.to(dtype), y, F.cross_entropy, mixed=mixed)
        tested = ensemble.train(False)(x[0].to(dtype))
        return [tensor.double() for tensor in (losses, outputs, gradient, tested, *ensemble.fixed.values())]

    exact = results("loop", torch.float64, mixed=False)
    if not mixed:
        for loop, batched in zip(exact, results("batched", torch.float64, mixed=False), strict=True):
            torch.testing.assert_close(batched, loop, rtol=1e-9, atol=1e-9)
        return
    # Deep networks amplify roundings, so neither is near the exact result: the loop's error is the measure.
    errors = [
        [
            float((one - other).norm())
            for one, other in zip(results(backend, torch.float32, mixed=True), exact, strict=True)
        ]
        for backend in ("loop", "batched")
    ]
    assert errors[0][2] > 0
    for loop, batched in zip(*errors, strict=True):
        assert batched <= 1.5 * loop + 1e-6


def test_a_users_network_of_other_parts_is_mapped_as_before() -> None:
    def build(seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return nn.Sequential(
                nn.Conv2d(3, 6, 3, groups=3, padding="same"), nn.GroupNorm(2, 6), nn.Tanh(), nn.InstanceNorm2d(6),
                nn.Conv2d(6, 4, 1), nn.AvgPool2d(2), nn.Flatten(1, 2), nn.Conv1d(12, 5, 3), nn.BatchNorm1d(5),
                nn.Flatten(), nn.Linear(15, 2),
            ).double()  # fmt: skip

    x, y = draws(E, B, 3, 6, 10), torch.tensor([[0, 1, 0, 1]] * E)
    found = [
        Ensemble.of([build(s) for s in range(E)], backend=backend).train().gradients(x, y, F.cross_entropy)
        for backend in ("loop", "batched")
    ]
    for loop, batched in zip(*found, strict=True):
        torch.testing.assert_close(batched, loop, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_a_member_that_overflows_does_not_touch_its_neighbours(kind: str) -> None:
    x, y = draws(E, 8, 3, 16, 16), torch.randint(10, (E, 8), generator=torch_generator("labels"))

    def gradients(scale: float) -> tuple[Tensor, Tensor, Tensor]:
        nets = [
            ThinNet(2, generator=torch_generator(s), kind=kind, image_size=16, dtype=torch.float64)
            for s in range(E)
        ]
        ensemble = Ensemble.of(nets, backend="batched").train()
        ensemble.rows[1] *= scale
        return ensemble.gradients(x, y, F.cross_entropy)

    healthy, ill = gradients(1.0), gradients(float("inf"))
    assert not bool(ill[0][1].isfinite())
    for before, after in zip(healthy, ill, strict=True):
        torch.testing.assert_close(after[[0, 2]], before[[0, 2]], rtol=0, atol=0)
