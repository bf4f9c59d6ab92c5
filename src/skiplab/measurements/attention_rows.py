"""How many rows of a softmax, an attention's too, give nearly all their weight to one entry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from skiplab.subjects.following import Call

SHARP = 0.99  # ours: there p(1 − p) is 4 % of the largest that it can be
ATTENTIONS = frozenset({"scaled_dot_product_attention", "multi_head_attention_forward"})


def softmax_rows(call: Call) -> tuple[Tensor, Tensor]:
    """How many rows of a softmax are sharp, NaN if a number is, and how many there are with more than one entry."""
    args, kwargs = call.values
    x = args[0] if args else kwargs["input"]
    axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    weights = call.outcome.exp() if call.name == "log_softmax" else call.outcome
    return _counted(
        weights.amax(-1 if axis is None else axis), _open(x).sum(-1 if axis is None else axis) > 1
    )


def attention_rows(call: Call) -> tuple[Tensor, Tensor]:
    """The same of an attention, whose weights are computed again, since a fused one does not hand them over."""
    several = _of_heads(call) if call.name == "multi_head_attention_forward" else _of_products(call)
    counts = [_counted(largest, entries > 1) for largest, entries in several]
    return torch.stack([each[0] for each in counts]).sum(), torch.stack([each[1] for each in counts]).sum()


def _counted(largest: Tensor, matters: Tensor) -> tuple[Tensor, Tensor]:
    poison = 0 * (largest * matters).sum(dtype=torch.float32)
    return ((largest > SHARP) & matters).sum() + poison, matters.sum()


def _open(scores: Tensor) -> Tensor:
    """Which entries are not masked; masks add −∞ or the most negative number that there is."""
    return scores > torch.finfo(scores.dtype).min / 2


def _of_products(call: Call) -> Iterator[tuple[Tensor, Tensor]]:
    """Largest weights and numbers of entries, sample by sample: scores of all samples may not fit into memory."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
    given: dict[str, Any] = dict(zip(names, call.values[0], strict=False)) | call.values[1]
    query, key = given["query"], given["key"]
    scale = given.get("scale") or query.shape[-1] ** -0.5
    mask = given.get("attn_mask")
    if mask is not None:
        mask = mask.expand(*query.shape[:-1], key.shape[-2])
    if key.shape[:-2] != query.shape[:-2]:  # groups of heads that share keys
        key = key.repeat_interleave(query.shape[-3] // key.shape[-3], -3)
    for place in range(len(query)):
        scores = query[place] @ key[place].mT * scale
        if given.get("is_causal"):
            ahead = torch.ones_like(scores, dtype=torch.bool).triu(1)
            scores = scores.masked_fill(ahead, -torch.inf)
        if mask is not None:
            own = mask[place]
            scores = scores.masked_fill(~own, -torch.inf) if own.dtype == torch.bool else scores + own
        yield scores.softmax(-1).amax(-1), _open(scores).sum(-1)


def _of_heads(call: Call) -> Iterator[tuple[Tensor, Tensor]]:
    """Of ``nn.MultiheadAttention``, whose function can be asked for its weights, (batch, heads, targets, sources)."""
    args, kwargs = call.values
    asked = kwargs | {"need_weights": True, "average_attn_weights": False}
    weights = F.multi_head_attention_forward(*args, **asked)[1]
    assert weights is not None
    weights = weights if weights.ndim == 4 else weights[None]
    closed = torch.zeros_like(weights, dtype=torch.bool)
    mask, padding = kwargs.get("attn_mask"), kwargs.get("key_padding_mask")
    if mask is not None:
        mask = mask if mask.dtype == torch.bool else ~_open(mask)
        closed |= mask if mask.ndim == 2 else mask.reshape(weights.shape)
    if padding is not None:
        padding = padding if padding.dtype == torch.bool else ~_open(padding)
        closed |= padding.reshape(len(weights), 1, 1, -1)
    yield weights.amax(-1), (~closed).sum(-1)
