from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from skiplab.architectures.activations import CReLU
from skiplab.architectures.initialisers import undrawn
from skiplab.architectures.orthogonal import DeltaOrthogonal, OrthogonalWeights, mirrored, orthonormal
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

DOUBLE = torch.float64


def close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-13)


def images(channels: int, size: int = 6) -> torch.Tensor:
    return torch.randn(2, channels, size, size, generator=torch_generator("images"), dtype=DOUBLE)


@pytest.mark.parametrize(("rows", "columns"), [(5, 5), (7, 4), (4, 7), (1, 6), (6, 1)])
def test_columns_are_orthonormal_or_rows_where_there_are_fewer(rows: int, columns: int) -> None:
    w = orthonormal(rows, columns, torch_generator(0))
    assert w.shape == (rows, columns)
    gram = w.T @ w if rows >= columns else w @ w.T
    close(gram, torch.eye(min(rows, columns), dtype=DOUBLE))


def test_orthonormal_matrices_are_drawn_uniformly() -> None:
    """QR alone fixes signs: without the correction the first entries would all be negative."""
    draws = torch.stack([orthonormal(3, 3, torch_generator(k)) for k in range(2000)])
    assert draws.mean(0).abs().max() < 4 / math.sqrt(3 * 2000)
    assert ((draws**2).mean(0) - 1 / 3).abs().max() < 4 * math.sqrt(4 / 45 / 2000)


@pytest.mark.parametrize("init", [OrthogonalWeights(gain=2.0), DeltaOrthogonal(gain=2.0)])
def test_linear_layers_start_orthogonal_with_a_gain_and_without_bias(init: OrthogonalWeights) -> None:
    layer = init.apply(undrawn(nn.Linear, 4, 6, dtype=DOUBLE), torch_generator(1))
    close(layer.weight.detach(), 2 * orthonormal(6, 4, torch_generator(1)))
    assert not layer.bias.any()


@pytest.mark.parametrize(("filters", "channels"), [(5, 3), (4, 4)])
@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_a_delta_orthogonal_convolution_keeps_the_norm_of_every_pixel(
    size: int, filters: int, channels: int
) -> None:
    conv = undrawn(nn.Conv2d, channels, filters, kernel_size=size, padding=size // 2, dtype=DOUBLE)
    DeltaOrthogonal().apply(conv, torch_generator(2))
    assert (conv.weight != 0).sum() == filters * channels
    x = images(channels)
    close(conv(x).norm(dim=1), x.norm(dim=1))


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_with_a_stride_it_keeps_the_pixels_at_its_multiples(stride: int) -> None:
    conv = undrawn(nn.Conv2d, 3, 4, kernel_size=3, padding=1, stride=stride, dtype=DOUBLE)
    DeltaOrthogonal().apply(conv, torch_generator(3))
    w = orthonormal(4, 3, torch_generator(3))
    x = images(3)
    close(conv(x).detach(), torch.einsum("ab,nbij->naij", w, x[:, :, ::stride, ::stride]))


def test_fewer_filters_than_channels_project_onto_orthonormal_rows() -> None:
    conv = undrawn(nn.Conv2d, 5, 2, kernel_size=3, padding=1, dtype=DOUBLE)
    tap = DeltaOrthogonal().apply(conv, torch_generator(4)).weight[:, :, 1, 1].detach()
    close(tap @ tap.T, torch.eye(2, dtype=DOUBLE))
    x = images(5)
    assert (conv(x).norm(dim=1) <= x.norm(dim=1) + 1e-12).all()


@pytest.mark.parametrize(("kind", "window"), [(nn.Conv1d, (5,)), (nn.Conv3d, (3, 1, 5)), (nn.Conv2d, (3, 7))])
def test_the_centre_is_found_in_any_number_of_dimensions(
    kind: type[nn.Conv1d], window: tuple[int, ...]
) -> None:
    conv = undrawn(kind, 3, 3, kernel_size=window, dtype=DOUBLE)  # type: ignore[arg-type]
    weight = DeltaOrthogonal().apply(conv, torch_generator(5)).weight.detach()
    for size in window:
        weight = weight[:, :, size // 2]
    close(weight, orthonormal(3, 3, torch_generator(5)))


def test_each_group_of_a_grouped_convolution_is_orthogonal_by_itself() -> None:
    conv = undrawn(nn.Conv2d, 6, 6, kernel_size=3, padding=1, groups=3, dtype=DOUBLE)
    DeltaOrthogonal().apply(conv, torch_generator(6))
    x = images(6)
    close(conv(x).norm(dim=1), x.norm(dim=1))
    assert not torch.equal(conv.weight[:2], conv.weight[2:4])


def test_the_stated_deviation_is_the_root_mean_square_of_the_entries() -> None:
    for rows, columns in ((9, 4), (4, 9)):
        w = 3 * orthonormal(rows, columns, torch_generator(7))
        assert math.isclose(OrthogonalWeights(3.0).deviation(columns, rows), float((w**2).mean().sqrt()))


def test_a_seed_names_the_same_weights_in_every_precision() -> None:
    double, single = (undrawn(nn.Linear, 5, 5, dtype=dtype) for dtype in (DOUBLE, torch.float32))
    for layer in (double, single):
        OrthogonalWeights().apply(layer, torch_generator(3))
    assert torch.equal(double.weight.float(), single.weight)


@pytest.mark.parametrize(
    ("layer", "x"),
    [
        (nn.Linear(4, 3, dtype=DOUBLE), torch.randn(5, 4, dtype=DOUBLE, generator=torch_generator("rows"))),
        (nn.Conv2d(4, 3, 3, stride=2, padding=1, dtype=DOUBLE), images(4)),
    ],
)
def test_a_mirrored_layer_does_to_crelu_what_the_layer_does_to_its_input(
    layer: nn.Linear | nn.Conv2d, x: torch.Tensor
) -> None:
    before = layer.weight.detach().clone()
    wide = mirrored(layer.eval())
    close(wide(CReLU()(x)).detach(), layer(x).detach())
    assert wide.weight.shape[1] == 8
    assert "8" in repr(wide)
    assert not wide.training
    assert torch.equal(layer.weight, before)
    assert wide.bias.data_ptr() != layer.bias.data_ptr()


def test_a_frozen_layer_stays_frozen_when_mirrored() -> None:
    layer = nn.Linear(2, 2)
    layer.weight.requires_grad_(False)
    assert not mirrored(layer).weight.requires_grad


def test_what_has_no_orthogonal_start_is_refused() -> None:
    with pytest.raises(
        Refused, match=r"shape \(4, 3, 3, 3\) are a convolution's; start it with DeltaOrthogonal"
    ):
        OrthogonalWeights().apply(nn.Conv2d(3, 4, 3), torch_generator(0))
    with pytest.raises(Refused, match="A kernel of 3 × 4 has no centre tap; use odd sizes"):
        DeltaOrthogonal().apply(nn.Conv2d(3, 4, (3, 4)), torch_generator(0))
    with pytest.raises(Refused, match="gain is inf, but must be a finite number"):
        DeltaOrthogonal(math.inf)
    with pytest.raises(Refused, match="has 2 groups, so halves of its input cannot be told apart"):
        mirrored(nn.Conv2d(4, 4, 3, groups=2))
    with pytest.raises(Refused, match="has no shape yet; pass one batch"):
        mirrored(nn.LazyLinear(3))
    with pytest.raises(Refused, match=r"generator is 3, but must be a torch\.Generator"):
        OrthogonalWeights().apply(nn.Linear(2, 2), 3)  # type: ignore[arg-type]
