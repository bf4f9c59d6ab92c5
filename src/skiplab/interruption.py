"""Ctrl-C inside a measurement: the caller's module and torch are as they were.

Every context manager here undoes what it did, but Ctrl-C may come between its last line and the caller's, where
Python runs no ``finally``. Whoever calls a measurement by its public name is therefore guarded once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# A module's hooks, and which of them take keywords or run always.
HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
)  # fmt: skip


@contextmanager
def unchanged_by_ctrl_c(targets: tuple[Any, ...]) -> Iterator[None]:
    """Put gradient mode, random stream, and the modes, hooks and attributes of modules back when Ctrl-C comes."""
    import torch
    from torch import nn

    from skiplab.subjects.untouched import put_back_since, waiting_now

    waiting = waiting_now()
    gradients, stream = torch.is_grad_enabled(), torch.get_rng_state()
    parts = [part for target in targets if isinstance(target, nn.Module) for part in target.modules()]
    modes = [part.training for part in parts]
    hooks = [{name: dict(getattr(part, name, {})) for name in HOOKS} for part in parts]
    try:
        yield
    except KeyboardInterrupt:
        put_back_since(waiting)
        torch.set_grad_enabled(gradients)
        torch.set_rng_state(stream)
        for part, mode, held in zip(parts, modes, hooks, strict=True):
            part.training = mode
            for name, before in held.items():
                now = getattr(part, name, None)
                if now is not None and dict(now) != before:
                    now.clear()
                    now.update(before)
        raise
