"""Which of torch's functions are affine in activities, which activate, and which only make gates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from skiplab.subjects.following import Call

PartsOf = Callable[[Any], Tensor | None]

_DIMENSIONS = (1, 2, 3)


def _names(words: str, *more: str) -> frozenset[str]:
    return frozenset((*words.split(), *more))


# Kept as they are, moved, summed, mixed by constants.
AFFINE = _names(
    """
    add radd iadd sub rsub isub neg sum mean nanmean cumsum clone contiguous to float double type type_as data detach
    view view_as reshape reshape_as flatten unflatten ravel squeeze unsqueeze transpose permute movedim swapaxes
    swapdims t T mT flip roll unfold fold getitem narrow select index_select gather take_along_dim split chunk unbind
    tensor_split cat concat concatenate stack hstack vstack where masked_fill pad expand expand_as broadcast_to repeat
    tile repeat_interleave tril triu diagonal linear addmm baddbmm addbmm interpolate upsample pixel_shuffle
    pixel_unshuffle channel_shuffle dropout dropout1d dropout2d dropout3d feature_dropout
    """,
    *(f"conv{way}{n}d" for way in ("", "_transpose") for n in _DIMENSIONS),
    *(f"{adaptive}avg_pool{n}d" for adaptive in ("", "adaptive_") for n in _DIMENSIONS),
)
# Affine in one activity if the others are constants, gates or statistics.
BILINEAR = _names(
    "mul rmul imul multiply div truediv divide matmul rmatmul mm bmm einsum bilinear addcmul lerp"
)
ACTIVATIONS = _names(
    """
    relu relu6 leaky_relu prelu rrelu elu celu selu gelu silu mish hardswish hardtanh tanh softplus softsign
    softshrink hardshrink threshold clamp clamp_min abs
    """
)
FREEZING = _names(
    """
    sigmoid hardsigmoid logsigmoid softmax log_softmax softmin exp log pow square sqrt rsqrt reciprocal rdiv rtruediv
    rpow sin cos var std var_mean std_mean norm vector_norm max min amax amin prod logsumexp erf normalize
    cosine_similarity
    """
)
# What comes out of an activation and is only moved is still a gate.
CARRIES = _names("view reshape flatten squeeze unsqueeze transpose permute dropout contiguous")
# In-place and reversed forms under the name of a function that takes parts.
_PLAIN: dict[str, Callable[..., Any]] = {
    "iadd": torch.add,
    "isub": torch.sub,
    "imul": torch.mul,
    "itruediv": torch.div,
}


def out_of_place(call: Call) -> Callable[..., Any]:
    """The call's function, or its form that changes nothing in place: parts are mapped over, constants are shared."""
    name = getattr(call.function, "__name__", "")
    if call.name == "view":  # parts may lie in memory in another order than the activity
        return _reshaped
    if call.name in _PLAIN:
        return _PLAIN[call.name]
    if name.endswith("_") and not name.endswith("__"):
        found: Callable[..., Any] = getattr(Tensor, call.name, None) or getattr(torch, call.name)
        return found
    if name == "__get__":
        return lambda tensor, *_: getattr(tensor, call.name)
    return call.function


def _reshaped(tensor: Tensor, *shape: Any) -> Tensor:
    return tensor.reshape(*shape)


def max_pooled(call: Call, parts_of: PartsOf) -> Tensor | None:
    """The parts of the entry that is largest in each window."""
    axes = int(call.name[-2])
    parts = parts_of(call.args[0])
    if parts is None:
        return None
    pool = getattr(F, f"{call.name.removesuffix('_with_indices')}_with_indices")
    args, kwargs = call.values
    kwargs = {key: value for key, value in kwargs.items() if key != "return_indices"}
    places = pool(*args, **kwargs)[1]
    flat = parts.flatten(-axes)
    index = places.flatten(-axes).expand(len(parts), *places.shape[:-axes], -1)
    return flat.gather(-1, index).reshape(len(parts), *places.shape)


def attended(call: Call, parts_of: PartsOf) -> Tensor | None:
    """Values' parts weighed by an attention that is held fixed; queries and keys only make it."""
    args, kwargs = call.values
    given = dict(zip(("query", "key", "value"), args, strict=False)) | kwargs
    followed = dict(zip(("query", "key", "value"), call.args, strict=False)) | call.kwargs
    parts = parts_of(followed["value"])
    if parts is None:
        return None
    rest = {key: value for key, value in given.items() if key not in ("query", "key", "value")}
    # Parts are one more axis of heads: vmap has no rule for the fused kernels.
    several = [given[name].expand(len(parts), *given[name].shape) for name in ("query", "key")]
    attention: Callable[..., Tensor] = F.scaled_dot_product_attention
    return attention(*several, parts, *args[3:], **rest)


def multi_headed(call: Call, parts_of: PartsOf) -> Tensor | None:
    """nn.MultiheadAttention: values projected, weighed by the attention as it is, projected again."""
    args, _ = call.values
    names = [
        "query",
        "key",
        "value",
        "embed_dim_to_check",
        "num_heads",
        "in_proj_weight",
        "in_proj_bias",
        "bias_k",
        "bias_v",
        "add_zero_attn",
        "dropout_p",
        "out_proj_weight",
        "out_proj_bias",
    ]
    given = dict(zip(names, args, strict=False)) | call.values[1]
    parts = parts_of(call.args[2])
    separate = given.get("v_proj_weight") if given.get("use_separate_proj_weight") else None
    if parts is None or given["bias_k"] is not None or given["add_zero_attn"]:
        return None
    settings = call.values[1] | {"need_weights": True, "average_attn_weights": False}
    weights = F.multi_head_attention_forward(*args, **settings)[1]  # (batch, heads, targets, sources)
    assert weights is not None
    width, heads = given["embed_dim_to_check"], given["num_heads"]
    matrix = given["in_proj_weight"][-width:] if separate is None else separate
    shift = None if given["in_proj_bias"] is None else given["in_proj_bias"][-width:]

    def through(value: Tensor) -> Tensor:  # (sources, batch, features)
        projected = F.linear(value, matrix, shift)
        split = projected.reshape(len(value), -1, heads, width // heads).permute(1, 2, 0, 3)
        mixed = (weights @ split).permute(2, 0, 1, 3).flatten(2)
        return F.linear(mixed, given["out_proj_weight"], given["out_proj_bias"])

    every = torch.vmap(through)(torch.cat([parts, torch.zeros_like(parts[:1])]))
    return torch.cat([every[:1], every[1:-1] - every[-1:]])


SPECIAL: dict[str, Callable[[Call, PartsOf], Tensor | None]] = {
    **{f"{adaptive}max_pool{n}d": max_pooled for adaptive in ("", "adaptive_") for n in (1, 2, 3)},
    "scaled_dot_product_attention": attended,
    "multi_head_attention_forward": multi_headed,
}
