"""Convolution, batch normalisation and ReLU of all members by Triton kernels, where these fit.

They fit what ``rectified`` fits, but convolutions without biases, with ``nn.BatchNorm2d`` behind them whose scales,
shifts and running statistics are float32, and shortcut A or none. Anything else goes the way of ``wide``.
"""

from __future__ import annotations

from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from skiplab.architectures.convolutional import IdentityShortcut
from skiplab.ensembles.rectified import (
    LARGEST,
    channels_last,
    convolved_in,
    filled_up,
    fits,
    precision_of,
    stored_numbers,
    turned,
)
from skiplab.ensembles.wide import Mapped
from skiplab.torch_private import is_batched


def fused_normalised(
    x: Tensor, conv: nn.Module, norm: nn.Module, shortcut: nn.Module | None, passed: Tensor | None
) -> Tensor | None:
    """ReLU(norm(conv(x))), or with shortcut(passed) added, inside ``torch.vmap``; None where no kernel fits.

    In training mode running statistics change in place, as they do in ``norm`` itself.
    """
    if not fits(conv, x, *([] if passed is None else [passed])) or conv.bias is not None:
        return None
    if (
        type(norm) is not nn.BatchNorm2d
        or norm.num_features != conv.out_channels
        or not norm.track_running_stats
    ):
        return None
    vectors = norm.weight, norm.bias, norm.running_mean, norm.running_var
    if any(vector is None or vector.dtype != torch.float32 or not is_batched(vector) for vector in vectors):
        return None
    rows, columns = (-(-length // conv.stride[0]) for length in x.shape[2:])
    if shortcut is None:
        passed, shortcut_stride = None, 1
    elif passed is not None and _adds_to(shortcut, passed, x, (len(x), conv.out_channels, rows, columns)):
        shortcut_stride = shortcut.stride
    else:
        return None
    momentum = 0.0
    if norm.training:
        # A mean over all batches so far needs their number as a number; one value has no variance, as torch will say.
        if norm.momentum is None or len(x) * rows * columns < 2:
            return None
        momentum = norm.momentum
        if norm.num_batches_tracked is not None:
            norm.num_batches_tracked.add_(1)
    return _Normalised.apply(
        x, conv.weight, *vectors, passed, conv.stride[0], shortcut_stride, norm.training, norm.eps, momentum
    )


def _adds_to(
    shortcut: nn.Module, passed: Tensor, x: Tensor, shape: tuple[int, ...]
) -> TypeGuard[IdentityShortcut]:
    """Whether it is a shortcut that the kernels know, and what it passes can be added to the field of x."""
    if type(shortcut) is not IdentityShortcut or passed.ndim != 4 or shortcut.padding < 0:
        return False
    if passed.dtype != convolved_in(x) or passed.device != x.device or stored_numbers(passed) > LARGEST:
        return False
    images, channels, *sides = passed.shape
    reached = [-(-side // shortcut.stride) for side in sides]
    return (images, channels + shortcut.padding, *reached) == shape


class _Normalised(Mapped):
    @staticmethod
    def vmap(info: Any, dims: Any, x: Tensor, weight: Tensor, *others: Any) -> tuple[Tensor, int]:
        images = channels_last(x, dims[0], info.batch_size)
        weight = filled_up(weight.movedim(dims[1], 0))
        vectors = [vector.movedim(dim, 0) for vector, dim in zip(others[:4], dims[2:6], strict=True)]
        passed, *settings = others[4:]
        if passed is not None:
            passed = channels_last(passed, dims[6], info.batch_size)
        y = NormalisedConvolution.apply(images, weight, *vectors, passed, *settings)
        return y.permute(0, 1, 4, 2, 3), 0


class NormalisedConvolution(torch.autograd.Function):
    """y (E, B, H, W, F) from x (E, B, H, W, C), weights (E, F, C, 3, 3), vectors (E, F) and what a shortcut passes.

    The vectors are scales, shifts, running means and running variances.
    """

    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        weight: Tensor,
        scale: Tensor,
        shift: Tensor,
        running_mean: Tensor,
        running_variance: Tensor,
        passed: Tensor | None,
        stride: int,
        shortcut_stride: int,
        training: bool,
        eps: float,
        momentum: float,
    ) -> Tensor:
        from skiplab.ensembles import normalised_kernels, wide_kernels

        kernels = turned(weight, x.dtype)
        z, moments, tile = wide_kernels.fields(x, kernels, stride, training, precision_of(x))
        scale, shift = _side_by_side(scale), _side_by_side(shift)
        if training:
            running = _side_by_side(running_mean), _side_by_side(running_variance)
            pixels = z.shape[1:4].numel()
            standard = normalised_kernels.statistics(
                moments, tile, pixels, eps, momentum, *running, scale, shift
            )
            for ours, theirs in zip(running, (running_mean, running_variance), strict=True):
                if ours is not theirs:
                    theirs.copy_(ours)
        else:
            standard = torch.stack([running_mean, (running_variance + eps).rsqrt(), scale, shift], 1)
        y = normalised_kernels.normalised(z, standard, passed, shortcut_stride)
        ctx.save_for_backward(x, kernels, z, standard, None if passed is None else y)
        ctx.settings = stride, shortcut_stride, training, None if passed is None else passed.shape
        ctx.weight_type = weight.dtype
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        from skiplab.ensembles import normalised_kernels, wide_kernels

        x, kernels, z, standard, y = ctx.saved_tensors
        stride, shortcut_stride, training, passed_shape = ctx.settings
        needed, precision = ctx.needs_input_grad, precision_of(x)
        gradient = gradient.contiguous()
        sums, masked = normalised_kernels.gradient_sums(gradient, y, z, standard)
        images = weight = passed = None
        if needed[0] or needed[1]:
            slope = gradient if masked is None else masked
            field = normalised_kernels.field_gradient(slope, z, standard, sums, masked is not None, training)
            if needed[1]:
                weight = wide_kernels.weights_alone(x, field, stride, precision).to(ctx.weight_type)
            if needed[0]:
                images = wide_kernels.backward_images(field, kernels, x, stride, False, precision)
        if needed[6] and masked is not None:
            passed = _handed_back(masked, passed_shape, shortcut_stride)
        scale, shift = (sums[:, 1] if needed[2] else None), (sums[:, 0] if needed[3] else None)
        return images, weight, scale, shift, None, None, passed, None, None, None, None, None


def _side_by_side(vectors: Tensor) -> Tensor:
    """Vectors (E, F) whose own numbers lie side by side: a copy only where they do not."""
    return vectors if vectors.stride(1) == 1 else vectors.contiguous()


def _handed_back(masked: Tensor, shape: torch.Size, stride: int) -> Tensor:
    """The gradient of what shortcut A passed, (E, B, H, W, C), from that of the field that it was added to."""
    if masked.shape == shape:
        return masked
    gradient = masked.new_zeros(shape)
    gradient[:, :, ::stride, ::stride] = masked[..., : shape[-1]]
    return gradient
