"""Normalisation of activities split by path length: deviations are constants, means are the parts' own.

y = γ (x − μ)/σ + β is linear in x but for σ, which is held fixed. Parts of the mean μ have lengths too: x_r − μ_r,
with μ_r the mean of the part over the same entries. Batch normalisation in evaluation mode subtracts a running mean
instead; what that leaves of the batch's mean starts a path there, together with β.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from skiplab.checks import Refused
from skiplab.subjects.following import Call

Constant = Callable[[Tensor], Tensor]
Rule = Callable[[Call, Tensor, Constant, bool], Tensor]


def _bound(call: Call, names: tuple[str, ...]) -> dict[str, Any]:
    args, kwargs = call.values
    return dict.fromkeys(names) | dict(zip(names, args, strict=False)) | kwargs


def batch_norm(call: Call, parts: Tensor, constant: Constant, live_means: bool) -> Tensor:
    """Running statistics; the parts' means are over all axes but that of the channels."""
    names = ("input", "running_mean", "running_var", "weight", "bias", "training", "momentum", "eps")
    given = _bound(call, names)
    x, eps = given["input"], 1e-5 if given["eps"] is None else given["eps"]
    if given["training"] or given["running_mean"] is None:
        raise Refused(
            f"batch normalisation in {call.scope!r} takes statistics of the batch itself; choose mode='batch', and "
            "layers with running statistics."
        )
    shape = [1, -1, *[1] * (x.ndim - 2)]
    axes = [axis for axis in range(x.ndim) if axis != 1]
    scale = (given["running_var"] + eps).rsqrt().reshape(shape)
    if given["weight"] is not None:
        scale = scale * given["weight"].reshape(shape)
    means = parts.mean([axis + 1 for axis in axes], keepdim=True)
    centred = parts - (means if live_means else means.detach())
    left = x.mean(axes, keepdim=True) - given["running_mean"].reshape(shape)
    start = left * scale
    if given["bias"] is not None:
        start = start + given["bias"].reshape(shape)
    return centred * scale + constant(start.expand_as(x))


def layer_norm(call: Call, parts: Tensor, constant: Constant, live_means: bool) -> Tensor:
    """Statistics of a sample over its last axes."""
    given = _bound(call, ("input", "normalized_shape", "weight", "bias", "eps"))
    x, eps = given["input"], 1e-5 if given["eps"] is None else given["eps"]
    axes = list(range(-len(given["normalized_shape"]), 0))
    scale = (x.var(axes, unbiased=False, keepdim=True) + eps).rsqrt()
    scaled = (parts - parts.mean(axes, keepdim=True)) * scale
    return _affine(scaled, given, constant, x)


def rms_norm(call: Call, parts: Tensor, constant: Constant, live_means: bool) -> Tensor:
    """A sample's root mean square, and no mean."""
    given = _bound(call, ("input", "normalized_shape", "weight", "eps"))
    x, eps = given["input"], given["eps"]
    axes = list(range(-len(given["normalized_shape"]), 0))
    scale = (x.square().mean(axes, keepdim=True) + (torch.finfo(x.dtype).eps if eps is None else eps)).rsqrt()
    return _affine(parts * scale, given, constant, x)


def group_norm(call: Call, parts: Tensor, constant: Constant, live_means: bool) -> Tensor:
    """Statistics of a sample over groups of channels."""
    given = _bound(call, ("input", "num_groups", "weight", "bias", "eps"))
    x, eps = given["input"], 1e-5 if given["eps"] is None else given["eps"]
    grouped = (len(x), given["num_groups"], -1)
    scale = (x.reshape(grouped).var(-1, unbiased=False, keepdim=True) + eps).rsqrt()
    several = parts.reshape(len(parts), *grouped)
    scaled = ((several - several.mean(-1, keepdim=True)) * scale).reshape(parts.shape)
    shape = [-1, *[1] * (x.ndim - 2)]
    for name in ("weight", "bias"):
        if given[name] is not None:
            given[name] = given[name].reshape(shape)
    return _affine(scaled, given, constant, x)


def _affine(scaled: Tensor, given: dict[str, Any], constant: Constant, x: Tensor) -> Tensor:
    if given["weight"] is not None:
        scaled = scaled * given["weight"]
    if given.get("bias") is not None:
        scaled = scaled + constant(given["bias"].expand_as(x))
    return scaled


RULES: dict[str, Rule] = {
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "group_norm": group_norm,
}
