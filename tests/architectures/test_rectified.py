"""A rectified convolution is offered to a rule, and computed in three operations where the rule declines."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skiplab.architectures.convolutional import IdentityShortcut, conv3x3
from skiplab.architectures.initialisers import He
from skiplab.architectures.rectified import fused_by, normalised_convolution, rectified_convolution
from skiplab.randomness import torch_generator

X = torch.randn(2, 3, 6, 6, generator=torch_generator("x"), dtype=torch.float64)
SHORTCUT = IdentityShortcut(3, 5, 2)


def convolution() -> nn.Conv2d:
    conv = conv3x3(3, 5, 2, bias=True, dtype=torch.float64)
    He().apply(conv, torch_generator("conv"))
    return conv


def test_without_a_rule_it_is_convolution_sum_and_relu() -> None:
    conv = convolution()
    torch.testing.assert_close(rectified_convolution(X, conv), torch.relu(conv(X)))
    torch.testing.assert_close(
        rectified_convolution(X, conv, SHORTCUT), torch.relu(conv(X) + SHORTCUT(X)), rtol=0, atol=0
    )


def test_a_rule_is_asked_first_and_may_decline() -> None:
    conv, asked = convolution(), []

    def rule(x: Tensor, given: nn.Module, shortcut: nn.Module | None) -> Tensor | None:
        asked.append((given, shortcut))
        return None if shortcut is None else x

    with fused_by(rule):
        assert rectified_convolution(X, conv, SHORTCUT) is X
        torch.testing.assert_close(rectified_convolution(X, conv), torch.relu(conv(X)))
    assert asked == [(conv, SHORTCUT), (conv, None)]
    rectified_convolution(X, conv)
    assert len(asked) == 2


def test_parts_with_hooks_are_never_skipped() -> None:
    shortcut, seen = IdentityShortcut(3, 5, 2), []
    for part in (conv := convolution(), shortcut):
        hook = part.register_forward_hook(lambda part, args, output: seen.append(output))
        with fused_by(lambda x, conv, shortcut: x):
            y = rectified_convolution(X, conv, shortcut)
        hook.remove()
        assert len(seen) == 1
        torch.testing.assert_close(y, torch.relu(conv(X) + shortcut(X)))
        seen.clear()


def test_a_normalised_convolution_is_offered_to_a_rule_of_its_own() -> None:
    conv, norm, asked = convolution(), nn.BatchNorm2d(5, dtype=torch.float64), []

    def rule(x: Tensor, *given: object) -> Tensor | None:
        asked.append(given)
        return x if given[2] is None else None

    with fused_by(None, rule):
        assert normalised_convolution(X, conv, norm) is X
        y = normalised_convolution(X, conv, norm, SHORTCUT, X)
        torch.testing.assert_close(rectified_convolution(X, conv), torch.relu(conv(X)))
    assert asked == [(conv, norm, None, None), (conv, norm, SHORTCUT, X)]
    torch.testing.assert_close(y, torch.relu(norm(conv(X)) + SHORTCUT(X)), rtol=0, atol=0)
    torch.testing.assert_close(
        normalised_convolution(X, conv, norm), torch.relu(norm(conv(X))), rtol=0, atol=0
    )
    assert len(asked) == 2


def test_parts_with_hooks_are_never_skipped_in_normalised_convolutions() -> None:
    parts = conv, norm, shortcut = (
        convolution(),
        nn.BatchNorm2d(5, dtype=torch.float64),
        IdentityShortcut(3, 5, 2),
    )
    seen: list[Tensor] = []
    for part in parts:
        hook = part.register_forward_hook(lambda part, args, output: seen.append(output))
        with fused_by(None, lambda x, *given: x):
            assert normalised_convolution(X, conv, norm, shortcut, X) is not X
        hook.remove()
    assert len(seen) == 3
