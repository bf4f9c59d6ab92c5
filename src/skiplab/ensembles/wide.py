"""E convolutional networks side by side in one wide network, for ``torch.vmap`` on a GPU.

torch's own rules for mapped images move members and channels around in memory between operations, normalise with
kernels that suit few channels, and refuse batch normalisation in mixed precision. Under ``wide_images`` member e's
channels are the channels eC … eC + C − 1 of one tensor (B, E·C, H, W) in channels-last order, from the first
convolution to the last: a convolution has E groups, a batch normalisation E·C channels, and nothing is copied
between them, unless C is no multiple of 8: cuDNN would then take the groups one by one, so zeros are put beside.

Numbers are those of the usual rules but for rounding. Only autograd below ``vmap`` sees what is computed here, so
functions that differentiate inside it (``torch.func``) go without.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

Dims = Sequence[int | None]
MULTIPLE = 8  # channels that cuDNN's fast kernels handle together


class wide_images(TorchFunctionMode):
    """Inside ``torch.vmap``: 2-D convolutions, batch normalisations and CReLUs of all members as wide ones."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        return RULES.get(func, func)(*args, **(kwargs or {}))


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    """As ``torch.conv2d``."""
    if input.ndim != 4:
        return torch.conv2d(input, weight, bias, stride, padding, dilation, groups)
    return _Convolution.apply(input, weight, bias, stride, padding, dilation, groups)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """As ``torch.nn.functional.batch_norm``."""
    return _Normalisation.apply(input, running_mean, running_var, weight, bias, training, momentum, eps)


def cat(tensors: list[Tensor] | tuple[Tensor, ...], dim: int = 0, **out: Any) -> Tensor:
    """As ``torch.cat``; images are joined along their channels without losing the layout."""
    if out or dim not in (1, -3) or any(tensor.ndim != 4 for tensor in tensors):
        return torch.cat(tensors, dim, **out)
    return _Concatenation.apply(*tensors)


def view(tensor: Tensor, *shape: Any, **dtype: Any) -> Tensor:
    """As ``Tensor.view``, but of a copy where the layout, which networks need not know of, forbids a view."""
    if dtype or isinstance(shape[0], torch.dtype):
        return tensor.view(*shape, **dtype)
    return tensor.reshape(*shape)


def group_norm(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """As ``torch.nn.functional.group_norm``, which ``torch.vmap`` refuses in channels-last order."""
    return F.group_norm(input.contiguous(), *args, **kwargs)


RULES: dict[Any, Callable[..., Any]] = {
    torch.conv2d: conv2d,
    F.batch_norm: batch_norm,
    torch.cat: cat,
    torch.Tensor.view: view,
    F.group_norm: group_norm,
}


def _members_first(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _wide(members: Tensor) -> Tensor:
    """(B, E·C, …) from (E, B, C, …), in channels-last order if they are images; a view if they lie so already."""
    if members.ndim != 5:
        return members.movedim(0, 1).flatten(1, 2)
    return members.permute(1, 3, 4, 0, 2).flatten(3, 4).permute(0, 3, 1, 2)


def _filled_up(members: Tensor, at: int) -> Tensor:
    """Put zeros after the end of an axis of (E, …, C, …), so that its length is a multiple of 8."""
    missing = -members.shape[at] % MULTIPLE
    if missing == 0:
        return members
    # As the last axis: zeros for images in channels-last order then cost one copy, not two.
    return F.pad(members.movedim(at, -1), (0, missing)).movedim(-1, at)


class _Wide(torch.autograd.Function):
    """An operation with a rule for ``torch.vmap``, and the plain one for operands that are not mapped.

    Inside the rule tensors are ordinary ones, whose operations autograd records: no derivative needs to be given.
    Operands that are not mapped belong to no member, so they have no derivative that anyone wants.
    """

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None: ...


class _Convolution(_Wide):
    @staticmethod
    def forward(*args: Any) -> Tensor:
        return torch.conv2d(*args)

    @staticmethod
    def vmap(
        info: Any, dims: Dims, x: Tensor, weight: Tensor, bias: Tensor | None, *settings: Any
    ) -> tuple[Tensor, int]:
        size, (stride, padding, dilation, groups) = info.batch_size, settings
        x, weight = _members_first(x, dims[0], size), _members_first(weight, dims[1], size)
        bias = None if bias is None else _members_first(bias, dims[2], size)
        filters = weight.shape[1]
        if groups == 1:
            x, weight = _filled_up(x, 2), _filled_up(_filled_up(weight, 2), 1)
            bias = None if bias is None else _filled_up(bias, 1)
        long_bias = None if bias is None else bias.flatten()
        wide = torch.conv2d(
            _wide(x), weight.flatten(0, 1), long_bias, stride, padding, dilation, groups * size
        )
        return wide.unflatten(1, (size, -1))[:, :, :filters], 1


class _Normalisation(_Wide):
    @staticmethod
    def forward(*args: Any) -> Tensor:
        return F.batch_norm(*args)

    @staticmethod
    def vmap(info: Any, dims: Dims, x: Tensor, *args: Any) -> tuple[Tensor, int]:
        size = info.batch_size
        # Views of running statistics, so that they change in place.
        vectors = [
            None if tensor is None else _members_first(tensor, dim, size).flatten()
            for tensor, dim in zip(args[:4], dims[1:5], strict=True)
        ]
        wide = F.batch_norm(_wide(_members_first(x, dims[0], size)), *vectors, *args[4:])  # type: ignore[arg-type]
        return wide.unflatten(1, (size, -1)), 1


class _Concatenation(_Wide):
    @staticmethod
    def forward(*tensors: Tensor) -> Tensor:
        return torch.cat(tensors, 1)

    @staticmethod
    def vmap(info: Any, dims: Dims, *tensors: Tensor) -> tuple[Tensor, int]:
        found = [
            _members_first(tensor, dim, info.batch_size) for tensor, dim in zip(tensors, dims, strict=True)
        ]
        # (B, H, W, E, C), the order in memory.
        return torch.cat([tensor.permute(1, 3, 4, 0, 2) for tensor in found], dim=-1).permute(
            3, 0, 4, 1, 2
        ), 0
