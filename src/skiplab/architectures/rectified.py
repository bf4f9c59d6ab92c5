"""ReLU(conv(x) + skip(x)) as one operation, or with batch normalisation, so that ensembles on a GPU may fuse it.

A network alone computes convolution, normalisation, addition and ReLU one after the other. ``fused_by`` lets another
room, which knows how many networks lie side by side, take the whole operation; the numbers are the same but for
rounding.
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
# rule(x, conv, norm, shortcut, passed) computes ReLU(norm(conv(x)) + shortcut(passed)), or without shortcut; or None.
NormalisedRule: TypeAlias = Callable[
    [Images, nn.Conv2d, nn.Module, nn.Module | None, Images | None], Images | None
]
_RULES: ContextVar[tuple[Rule | None, NormalisedRule | None]] = ContextVar("rules", default=(None, None))


@contextlib.contextmanager
def fused_by(rule: Rule | None, normalised: NormalisedRule | None = None) -> Iterator[None]:
    """Offer every rectified convolution to a rule first, and normalised ones to another, as long as this lasts."""
    token = _RULES.set((rule, normalised))
    try:
        yield
    finally:
        _RULES.reset(token)


def rectified_convolution(x: Images, conv: nn.Conv2d, shortcut: nn.Module | None = None) -> Images:
    """ReLU(conv(x)), or ReLU(shortcut(x) + conv(x)) with a shortcut of kind A (``IdentityShortcut``)."""
    rule, _ = _RULES.get()
    # Whoever looks at the convolution's own outputs through a hook gets them: then nothing is fused.
    if rule is not None and not has_hooks(conv) and not (shortcut is not None and has_hooks(shortcut)):
        fused = rule(x, conv, shortcut is not None)
        if fused is not None:
            return fused
    return torch.relu(conv(x) if shortcut is None else shortcut(x) + conv(x))


def normalised_convolution(
    x: Images,
    conv: nn.Conv2d,
    norm: nn.Module,
    shortcut: nn.Module | None = None,
    passed: Images | None = None,
) -> Images:
    """ReLU(norm(conv(x))), or ReLU(norm(conv(x)) + shortcut(passed)) with a shortcut of kind A."""
    _, rule = _RULES.get()
    parts = (conv, norm) if shortcut is None else (conv, norm, shortcut)
    if rule is not None and not any(has_hooks(part) for part in parts):
        fused = rule(x, conv, norm, shortcut, passed)
        if fused is not None:
            return fused
    field = norm(conv(x))
    return torch.relu(field if shortcut is None else field + shortcut(passed))
