"""Looking inside a network while it runs: functions called before and after its parts.

This is the one place where hooks are registered. They are on a network that is not ours, so they live inside a
``with`` and are gone after it, also where the network, a visitor or the registration itself fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.torch_private import is_compiled

# What is called before a part: visit(part, args, kwargs); what it returns other than None replaces both.
Before: TypeAlias = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], Any]
# What is called after a part: visit(part, args, kwargs, output); what it returns other than None is the output.
After: TypeAlias = Callable[[nn.Module, tuple[Any, ...], dict[str, Any], Any], Any]


@contextlib.contextmanager
def visited(
    *, before: Iterable[tuple[nn.Module, Before]] = (), after: Iterable[tuple[nn.Module, After]] = ()
) -> Iterator[None]:
    """Have functions called before and after parts of a network, as long as this lasts.

    >>> seen = []
    >>> with visited(after=[(model[0], lambda part, args, kwargs, output: seen.append(output.shape))]):
    ...     answer = model(x)
    >>> seen
    [torch.Size([16, 8])]
    """
    with contextlib.ExitStack() as stack:
        try:
            for part, first in before:
                stack.callback(part.register_forward_pre_hook(first, with_kwargs=True).remove)
            for part, then in after:
                stack.callback(part.register_forward_hook(then, with_kwargs=True).remove)
        except RuntimeError as problem:  # of torch.jit.script; what torch.jit.trace makes takes hooks
            raise Refused(
                "a layer is TorchScript, which lets nobody look inside; measure the module that was scripted."
            ) from problem
        yield


def first_argument(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tensor:
    """The first tensor that a part is called with; lists, which layers of a DenseNet take, are refused."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, Tensor):
            return value
    kinds = ", ".join(dict.fromkeys(type(value).__name__ for value in (*args, *kwargs.values()))) or "nothing"
    raise Refused(f"a layer is called with {kinds}, not with a tensor; choose layers that take one.")


def with_first_tensor(name: str, output: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """What a layer returned with its tensor, or the first of a tuple, changed."""
    if isinstance(output, Tensor):
        return change(output)
    if isinstance(output, tuple) and output and isinstance(output[0], Tensor):
        parts = (change(output[0]), *output[1:])
        return type(output)(*parts) if hasattr(output, "_fields") else parts
    raise Refused(f"layer {name!r} returns a {type(output).__name__}, not a tensor; choose another layer.")


def as_written(module: nn.Module) -> contextlib.AbstractContextManager[Any]:
    """Run what torch.compile made of a module or of its parts as it was written, without compiling for our hooks.

    Nothing is done where nothing is compiled, since asking for it loads the compiler.
    """
    if not any(is_compiled(part) for part in module.modules()):
        return contextlib.nullcontext()
    return torch.compiler.set_stance("force_eager")
