"""What networks expect of sizes and inputs, refused in one sentence where they get something else."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from skiplab.checks import require, whole_numbers


def rows(x: Tensor, features: int, *, flat: bool = False) -> Tensor:
    """Return the input if its last axis holds this many features; ``flat`` also demands one batch axis."""
    shape = tuple(x.shape)
    require(
        len(shape) >= 1 and shape[-1] == features,
        f"The input has shape {shape}, but this network takes {features} features in the last axis; "
        f"reshape the input or build the network with another number of inputs.",
    )
    require(
        not flat or len(shape) == 2,
        f"The input has shape {shape}, but batch normalisation needs (batch, {features}); "
        f"flatten the leading axes.",
    )
    return x


def images(x: Tensor, channels: int, halvings: int, size: int | None = None) -> Tensor:
    """Return the input if it is a batch of images with these channels, large enough to be halved so often.

    A network that flattens its images also needs them to be ``size`` pixels high and wide.
    """
    shape, least = tuple(x.shape), 2**halvings
    require(
        len(shape) == 4 and shape[1] == channels,
        f"The input has shape {shape}, but this network takes (batch, {channels}, height, width); "
        f"reshape the input or build the network with another number of channels.",
    )
    require(
        min(shape[2:]) >= least,
        f"Images of {shape[2]} × {shape[3]} are too small to be halved {halvings} times; "
        f"pass at least {least} × {least} or build fewer groups of filters.",
    )
    require(
        size is None or shape[2:] == (size, size),
        f"The input has shape {shape}, but this network takes (batch, {channels}, {size}, {size}); reshape the input "
        f"or build the network with another image_size.",
    )
    return x


def never_falling(name: str, sizes: Sequence[int]) -> None:
    """Refuse no sizes, or sizes of which one is smaller than the one before it."""
    require(len(sizes) >= 1, f"{name} are empty; give one number a group, such as (16, 32, 64).")
    for size in sizes:
        whole_numbers(**{name: size})
    require(
        list(sizes) == sorted(sizes),
        f"{name} are {tuple(sizes)}, but must not fall, because the shortcut pads channels and never drops "
        f"any; sort them.",
    )
