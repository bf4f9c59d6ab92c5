"""E convolutional networks side by side in one wide network, for ``torch.vmap`` on a GPU.

torch's own rules for mapped images move members and channels around in memory between operations, normalise with
kernels that suit few channels, and refuse batch normalisation in mixed precision. Under ``wide_images`` member e's
channels are the channels eC … eC + C − 1 of one tensor (B, E·C, H, W) in channels-last order, from the first
convolution to the last: a convolution has E groups, a batch normalisation E·C channels, and nothing is copied
between them, unless C is no power of two from 8 on: cuDNN would take the groups one by one, so zeros are put beside.

Numbers are those of the usual rules but for rounding. Only autograd below ``vmap`` sees what is computed here, so
functions that differentiate inside it (``torch.func``) go without.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from skiplab.torch_private import is_batched, is_transformed

Dims = Sequence[int | None]
CONVOLVE: Callable[..., Tensor] = torch.conv2d  # of any arguments: torch types each way to pad by itself
MOST = 64  # channels of a member, beyond which cuDNN takes the groups one by one


class wide_images(TorchFunctionMode):
    """Inside ``torch.vmap``: convolutions, normalisations, … of all members as those of one wide network."""

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
    if input.ndim != 4 or not _mapped(input, weight):
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
    if not _mapped(input, running_mean, weight):
        return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)
    return _Normalisation.apply(input, running_mean, running_var, weight, bias, training, momentum, eps)


def cat(tensors: list[Tensor] | tuple[Tensor, ...], dim: int = 0, **out: Any) -> Tensor:
    """As ``torch.cat``; images are joined along their channels without losing the layout."""
    if out or dim not in (1, -3) or any(tensor.ndim != 4 for tensor in tensors) or not _mapped(*tensors):
        return torch.cat(tensors, dim, **out)
    return _Concatenation.apply(*tensors)


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """As ``torch.nn.functional.pad``; images keep the layout, so that a padded shortcut does not undo it."""
    if input.ndim != 4 or mode != "constant" or len(pad) > 6 or not _mapped(input):
        return F.pad(input, pad, mode, value)
    return _Padding.apply(input, (*pad, *[0] * (6 - len(pad))), value)


def getitem(tensor: Tensor, index: Any) -> Tensor:
    """As ``Tensor.__getitem__``; images[..., rows, columns] keep the layout, and so do their derivatives."""
    subsampled = isinstance(index, tuple) and len(index) == 3 and index[0] is Ellipsis
    if tensor.ndim == 4 and _mapped(tensor) and subsampled and all(isinstance(i, slice) for i in index[1:]):
        return _Subsampling.apply(tensor, *index[1:])
    return tensor[index]


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
    F.pad: pad,
    torch.Tensor.__getitem__: getitem,
    torch.Tensor.view: view,
    F.group_norm: group_norm,
}


def _mapped(*operands: Tensor | None) -> bool:
    # Where ``torch.func`` differentiates by one of them inside ``vmap``, torch's own rules know what to do.
    changed = [tensor for tensor in operands if tensor is not None and is_transformed(tensor)]
    return bool(changed) and all(is_batched(tensor) for tensor in changed)


def _members_first(tensor: Tensor, dim: int | None, size: int) -> Tensor:
    return tensor.expand(size, *tensor.shape) if dim is None else tensor.movedim(dim, 0)


def _in_memory(members: Tensor) -> Tensor:
    """Images (E, B, C, H, W) in the order in which they lie in memory, (B, H, W, E, C)."""
    return members.permute(1, 3, 4, 0, 2)


def _members(in_memory: Tensor) -> Tensor:
    """The inverse of ``_in_memory``."""
    return in_memory.permute(3, 0, 4, 1, 2)


def _wide(members: Tensor) -> Tensor:
    """(B, E·C, …) from (E, B, C, …), in channels-last order if they are images; a view if they lie so already."""
    if members.ndim != 5:
        return members.movedim(0, 1).flatten(1, 2)
    return _in_memory(members).flatten(3, 4).permute(0, 3, 1, 2)


def _apart(wide: Tensor, size: int, channels: int) -> tuple[Tensor, int]:
    """The members' images again, and the axis on which members lie; channels beyond those named are dropped."""
    # Dropped in the order of memory, so that the derivative, which puts zeros there, comes in that order too.
    images = wide.permute(0, 2, 3, 1).unflatten(3, (size, -1))[..., :channels]
    return _members(images), 0


def _filled_up(channels: int) -> int:
    """The next power of two from 8 on: the numbers for which cuDNN has grouped kernels."""
    return max(8, 1 << (channels - 1).bit_length())


class Mapped(torch.autograd.Function):
    """An operation of which only the rule for ``torch.vmap`` is ever used.

    Inside the rule tensors are ordinary ones, whose operations autograd records: none needs a derivative here.
    """

    @staticmethod
    def forward(*args: Any) -> Tensor:
        raise NotImplementedError

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None: ...


class _Convolution(Mapped):
    @staticmethod
    def vmap(
        info: Any, dims: Dims, x: Tensor, weight: Tensor, bias: Tensor | None, *settings: Any
    ) -> tuple[Tensor, int]:
        size = info.batch_size
        x, weight = _members_first(x, dims[0], size), _members_first(weight, dims[1], size)
        bias = None if bias is None else _members_first(bias, dims[2], size)
        if torch.is_autocast_enabled(x.device.type):  # here, since it makes the weights contiguous too
            weight = weight.to(torch.get_autocast_dtype(x.device.type))
        *others, groups = settings
        filters, channels = weight.shape[1:3]
        if groups > 1:
            wide = CONVOLVE(_wide(x), weight.flatten(0, 1), _flat(bias), *others, groups * size)
            return _apart(wide, size, filters)
        if channels <= MOST:
            return _apart(_convolved(x, weight, bias, *others), size, filters)
        # By parts of so many channels, and their sum.
        parts = zip(_in_memory(x).split(MOST, dim=-1), weight.split(MOST, dim=2), strict=True)
        each = [
            _convolved(_members(images), kernels, None if place else bias, *others)
            for place, (images, kernels) in enumerate(parts)
        ]
        return _apart(functools.reduce(torch.add, each), size, filters)


def _flat(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.flatten()


def _convolved(x: Tensor, weight: Tensor, bias: Tensor | None, *settings: Any) -> Tensor:
    """The wide convolution of members' images (E, B, C, H, W), with zeros beside odd numbers of channels."""
    size, filters, channels = weight.shape[:3]
    more, further = _filled_up(filters) - filters, _filled_up(channels) - channels
    if further:
        x = _members(F.pad(_in_memory(x), (0, further)))
    if more or further:
        weight = F.pad(weight, (0, 0, 0, 0, 0, further, 0, more))
    bias = None if bias is None else F.pad(bias, (0, more))
    return CONVOLVE(_wide(x), weight.flatten(0, 1), _flat(bias), *settings, size)


class _Normalisation(Mapped):
    @staticmethod
    def vmap(info: Any, dims: Dims, x: Tensor, *args: Any) -> tuple[Tensor, int]:
        size = info.batch_size
        # Views of running statistics, so that they change in place.
        vectors = [
            None if tensor is None else _members_first(tensor, dim, size).flatten()
            for tensor, dim in zip(args[:4], dims[1:5], strict=True)
        ]
        wide = F.batch_norm(_wide(_members_first(x, dims[0], size)), *vectors, *args[4:])  # type: ignore[arg-type]
        if wide.ndim == 4:
            return _apart(wide, size, wide.shape[1] // size)
        return wide.unflatten(1, (size, -1)), 1


class _Concatenation(Mapped):
    @staticmethod
    def vmap(info: Any, dims: Dims, *tensors: Tensor) -> tuple[Tensor, int]:
        found = [
            _members_first(tensor, dim, info.batch_size) for tensor, dim in zip(tensors, dims, strict=True)
        ]
        return _members(torch.cat([_in_memory(tensor) for tensor in found], dim=-1)), 0


class _Padding(Mapped):
    @staticmethod
    def vmap(
        info: Any, dims: Dims, x: Tensor, pads: Sequence[int], value: float | None
    ) -> tuple[Tensor, int]:
        images = _in_memory(_members_first(x, dims[0], info.batch_size))
        across, down, channels = pads[:2], pads[2:4], pads[4:]
        padded = F.pad(images, (*channels, 0, 0, *across, *down), value=value)
        return _members(padded), 0


class _Subsampling(Mapped):
    @staticmethod
    def vmap(info: Any, dims: Dims, x: Tensor, rows: slice, columns: slice) -> tuple[Tensor, int]:
        images = _in_memory(_members_first(x, dims[0], info.batch_size))
        return _members(images[:, rows, columns]), 0
