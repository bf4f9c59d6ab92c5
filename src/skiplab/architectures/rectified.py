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

# rule(x, conv, shortcut) computes ReLU(shortcut(x) + conv(x)), or without shortcut; None where it cannot, as where
# a network has something else in the place of a convolution or of shortcut A.
Rule: TypeAlias = Callable[[Images, nn.Module, nn.Module | None], Images | None]
# rule(x, conv, norm, shortcut, passed) computes ReLU(norm(conv(x)) + shortcut(passed)), or without shortcut; or None.
NormalisedRule: TypeAlias = Callable[
    [Images, nn.Module, nn.Module, nn.Module | None, Images | None], Images | None
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


def rectified_convolution(x: Images, conv: nn.Module, shortcut: nn.Module | None = None) -> Images:
    """ReLU(conv(x)), or ReLU(shortcut(x) + conv(x)) with a shortcut of kind A (``IdentityShortcut``)."""
    fused = rectified_by_rule(x, conv, shortcut)
    if fused is not None:
        return fused
    return torch.relu(conv(x) if shortcut is None else shortcut(x) + conv(x))


def rectified_by_rule(x: Images, conv: nn.Module, shortcut: nn.Module | None = None) -> Images | None:
    """What the rule for rectified convolutions makes of them; None without a rule, or where it cannot."""
    rule, _ = _RULES.get()
    if rule is None or _looked_at(conv, shortcut):
        return None
    return rule(x, conv, shortcut)


def normalised_convolution(
    x: Images,
    conv: nn.Module,
    norm: nn.Module,
    shortcut: nn.Module | None = None,
    passed: Images | None = None,
) -> Images:
    """ReLU(norm(conv(x))), or ReLU(norm(conv(x)) + shortcut(passed)) with a shortcut of kind A."""
    fused = normalised_by_rule(x, conv, norm, shortcut, passed)
    if fused is not None:
        return fused
    field = norm(conv(x))
    return torch.relu(field if shortcut is None else field + shortcut(passed))


def normalised_by_rule(
    x: Images,
    conv: nn.Module,
    norm: nn.Module,
    shortcut: nn.Module | None = None,
    passed: Images | None = None,
) -> Images | None:
    """What the rule for normalised convolutions makes of them; None without a rule, or where it cannot."""
    _, rule = _RULES.get()
    if rule is None or _looked_at(conv, norm, shortcut):
        return None
    return rule(x, conv, norm, shortcut, passed)


def is_plain_relu(part: nn.Module) -> bool:
    """Whether a module is torch's own ReLU, which a rule may compute along with what stands before it."""
    return type(part) is nn.ReLU and not _looked_at(part)


def _looked_at(*parts: nn.Module | None) -> bool:
    """Whether someone looks at the outputs of a part through a hook: who does gets them, and nothing is fused."""
    return any(part is not None and has_hooks(part) for part in parts)
