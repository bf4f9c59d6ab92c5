"""A module is borrowed for a measurement: in the mode that was asked for, watched, and given back as it was."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.subjects.failures import refuse_overwriting
from skiplab.subjects.hooks import After, Before, first_argument, visited, with_first_tensor
from skiplab.subjects.untouched import untouched


@contextlib.contextmanager
def borrowed(
    module: nn.Module,
    names: Sequence[str] = (),
    visit: Callable[[str, Tensor], Tensor] | None = None,
    inputs_of: Collection[str] = (),
    *,
    train_mode: bool,
    device: torch.device,
) -> Iterator[Callable[[], None]]:
    """Set the mode, hook the named layers, fix the random stream; undo all of it whatever happens.

    ``visit`` may change what a layer returns; of the layers in ``inputs_of`` it sees what they take instead.
    Yields a function that starts the count of each layer's calls anew, for the next member.
    """
    modes = {part: part.training for part in module.modules()}
    calls: dict[str, int] = {}

    def seen(name: str, tensor: Tensor) -> Tensor:
        calls[name] = calls.get(name, 0) + 1
        assert visit is not None
        return visit(name if calls[name] == 1 else f"{name}#{calls[name]}", tensor)

    def input_of(name: str) -> Before:
        def before(_: nn.Module, args: Any, kwargs: Any) -> None:
            seen(name, first_argument(args, kwargs))

        return before

    def output_of(name: str) -> After:
        return lambda _, __, ___, output: with_first_tensor(name, output, lambda tensor: seen(name, tensor))

    parts = dict(module.named_modules())
    before = [(parts[name], input_of(name)) for name in names if name in inputs_of]
    after = [(parts[name], output_of(name)) for name in names if name not in inputs_of]
    devices = [device] if device.type == "cuda" else []
    with untouched(module), torch.random.fork_rng(devices=devices):
        # Dropout in training mode: fixed, and the caller's stream untouched. torch.manual_seed would also
        # seed other devices, whose state is not put back.
        torch.default_generator.manual_seed(0)
        for each in devices:
            with torch.cuda.device(each):
                torch.cuda.manual_seed(0)
        try:
            for part in modes:
                part.training = train_mode
            with visited(before=before, after=after):
                yield calls.clear
        except RuntimeError as problem:
            if type(problem) is RuntimeError and "modified by an inplace operation" in str(problem):
                refuse_overwriting(problem)
            raise
        finally:
            for part, mode in modes.items():
                part.training = mode
