"""ReLU(conv(x) + skip(x)) as one operation, so that ensembles on a GPU may compute it in one pass over memory.

A network alone computes convolution, addition and ReLU one after the other. ``fused_by`` lets another room, which
knows how many networks lie side by side, take the whole operation; the numbers are the same but for rounding.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import TypeAlias

import torch
from torch import nn

from skiplab.shapes import Images
from skiplab.torch_private import has_hooks

# rule(x, conv, residual) computes ReLU(conv(x) + x), or ReLU(conv(x)) if not residual; None where it cannot.
Rule: TypeAlias = Callable[[Images, nn.Conv2d, bool], Images | None]
_RULE: ContextVar[Rule | None] = ContextVar("rule", default=None)


@contextlib.contextmanager
def fused_by(rule: Rule) -> Iterator[None]:
    """Offer every rectified convolution to a rule first, as long as this lasts."""
    token = _RULE.set(rule)
    try:
        yield
    finally:
        _RULE.reset(token)


def rectified_convolution(x: Images, conv: nn.Conv2d, shortcut: nn.Module | None = None) -> Images:
    """ReLU(conv(x)), or ReLU(shortcut(x) + conv(x)) with a shortcut of kind A (``IdentityShortcut``)."""
    rule = _RULE.get()
    # Whoever looks at the convolution's own outputs through a hook gets them: then nothing is fused.
    if rule is not None and not has_hooks(conv) and not (shortcut is not None and has_hooks(shortcut)):
        fused = rule(x, conv, shortcut is not None)
        if fused is not None:
            return fused
    return torch.relu(conv(x) if shortcut is None else shortcut(x) + conv(x))
