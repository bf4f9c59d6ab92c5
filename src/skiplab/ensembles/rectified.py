"""Rectified convolutions of all members by the kernels of ``wide_kernels``, where these fit.

They fit 3 × 3 convolutions with biases, padding 1 and stride 1 or 2 from at most 64 channels to 16, 32 or 64 filters,
in bfloat16 or float32 on a Hopper GPU with Triton. Anything else goes the way of ``wide``. The kernels have first
derivatives and no second ones, so only passes that are differentiated once, or not at all, come here.
"""

from __future__ import annotations

import functools
import importlib.util
from typing import Any, TypeGuard

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from skiplab.architectures.convolutional import IdentityShortcut
from skiplab.ensembles.wide import Mapped
from skiplab.torch_private import is_batched, is_transformed

FILTERS = (16, 32, 64)
MOST_CHANNELS = 64
LARGEST = 2**31 - 1  # numbers of one member's images, beyond which places in them need 64 bits
FEWEST_CHANNELS = 4  # three colours and a zero: rows of eight bytes


def fused_rectified(x: Tensor, conv: nn.Module, shortcut: nn.Module | None) -> Tensor | None:
    """ReLU(conv(x)), or with shortcut(x) added, inside ``torch.vmap``; None where the kernels do not fit."""
    if not fits(conv, x) or conv.bias is None or not is_batched(conv.bias):
        return None
    stride, more = conv.stride[0], conv.out_channels - conv.in_channels
    if shortcut is not None and (
        type(shortcut) is not IdentityShortcut
        or (shortcut.stride, shortcut.padding) != (stride, more)
        or more < 0
    ):
        return None
    return _Rectified.apply(x, conv.weight, conv.bias, stride, shortcut is not None)


def fits(conv: nn.Module, *images: Tensor) -> TypeGuard[nn.Conv2d]:
    """Whether a part is a convolution, bias or not, that the kernels know, of images of their shape, type and device.

    Further images are what the operation adds.
    """
    # A class of one's own, which torch makes of a convolution with a parametrised weight too, computes what it will.
    if type(conv) is not nn.Conv2d or not is_batched(conv.weight):
        return False
    # What torch.func differentiates inside vmap needs derivatives that are not here.
    if any(is_transformed(each) and not is_batched(each) for each in images):
        return False
    x = images[0]
    shaped = conv.kernel_size == (3, 3) and conv.padding == (1, 1) and conv.padding_mode == "zeros"
    shaped &= conv.dilation == (1, 1) and conv.groups == 1 and conv.stride in ((1, 1), (2, 2))
    channels, filters = conv.in_channels, conv.out_channels
    shaped &= channels <= MOST_CHANNELS and filters in FILTERS and x.ndim == 4
    if not shaped or x.shape[1] != channels:
        return False
    if max(stored_numbers(x), len(x) * filters * x.shape[2] * x.shape[3]) > LARGEST:
        return False
    if torch.is_autocast_enabled(x.device.type):
        computed = torch.get_autocast_dtype(x.device.type)
    else:
        computed = x.dtype if x.dtype == conv.weight.dtype else torch.float64
    return computed in (torch.bfloat16, torch.float32) and available(x.device)


@functools.cache
def available(device: torch.device) -> bool:
    """Whether the kernels run on a device: a Hopper GPU or later, whose memory their tiles fit, and Triton."""
    if device.type != "cuda" or importlib.util.find_spec("triton") is None:
        return False
    return torch.cuda.get_device_capability(device) >= (9, 0)


def _filled_up(channels: int) -> int:
    return max(FEWEST_CHANNELS, 1 << (channels - 1).bit_length())


def stored_numbers(x: Tensor) -> int:
    """How many numbers one member's images (B, C, H, W) are to the kernels, zeros of ``channels_last`` included."""
    return len(x) * _filled_up(x.shape[1]) * x.shape[2] * x.shape[3]


def convolved_in(x: Tensor) -> torch.dtype:
    """The type in which convolutions of these images are computed: that of autocast, if it is on."""
    device = x.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype


def channels_last(x: Tensor, dim: int | None, size: int) -> Tensor:
    """Mapped images as (E, B, H, W, C) with zeros behind them, so that C is a power of two, in the type computed in.

    It is a view, no copy, of images that come from these kernels.
    """
    images = (x.expand(size, *x.shape) if dim is None else x.movedim(dim, 0)).permute(0, 1, 3, 4, 2)
    more = _filled_up(images.shape[-1]) - images.shape[-1]
    return (F.pad(images, (0, more)) if more else images).to(convolved_in(x)).contiguous()


def filled_up(weight: Tensor) -> Tensor:
    """Weights (E, F, C, 3, 3) with zeros where ``channels_last`` put some beside images of C channels."""
    more = _filled_up(weight.shape[2]) - weight.shape[2]
    return F.pad(weight, (0, 0, 0, 0, 0, more)) if more else weight


def turned(weight: Tensor, dtype: torch.dtype) -> Tensor:
    """Weights (E, F, C, 3, 3) as kernels (E, 9, C, F) of a type, in one pass."""
    size, filters, channels = weight.shape[:3]
    kernels = weight.new_empty(size, 9, channels, filters, dtype=dtype)
    kernels.view(size, 3, 3, channels, filters).copy_(weight.permute(0, 3, 4, 2, 1))
    return kernels


class _Rectified(Mapped):
    @staticmethod
    def vmap(
        info: Any, dims: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int, residual: bool
    ) -> tuple[Tensor, int]:
        images = channels_last(x, dims[0], info.batch_size)
        weight, bias = filled_up(weight.movedim(dims[1], 0)), bias.movedim(dims[2], 0)
        return RectifiedConvolution.apply(images, weight, bias, stride, residual).permute(0, 1, 4, 2, 3), 0


class RectifiedConvolution(torch.autograd.Function):
    """y (E, B, H, W, F) from x (E, B, H, W, C), weights (E, F, C, 3, 3) and biases (E, F)."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, stride: int, skip: bool) -> Tensor:
        from skiplab.ensembles import wide_kernels

        kernels = turned(weight, x.dtype)
        y = wide_kernels.forward(x, kernels, bias.contiguous(), stride, skip, precision_of(x))
        ctx.save_for_backward(x, kernels, y)
        ctx.settings = stride, skip
        ctx.kinds = weight.dtype, bias.dtype
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from skiplab.ensembles import wide_kernels

        x, kernels, y = ctx.saved_tensors
        (stride, skip), precision = ctx.settings, precision_of(x)
        weight, bias, masked = wide_kernels.backward_weights(x, y, gradient.contiguous(), stride, precision)
        images = None
        if ctx.needs_input_grad[0]:
            images = wide_kernels.backward_images(masked, kernels, x, stride, skip, precision)
        return images, weight.to(ctx.kinds[0]), bias.to(ctx.kinds[1]), None, None


def precision_of(x: Tensor) -> str:
    """How tensor cores multiply float32: as cuDNN would."""
    try:
        rounded = x.is_cuda and torch.backends.cudnn.allow_tf32
    except RuntimeError:  # torch's two interfaces for it disagree
        rounded = False
    return "tf32" if rounded else "ieee"
