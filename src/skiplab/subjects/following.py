"""Following a forward pass: a function is told of every call to torch in which a followed tensor takes part.

A ``Followed`` tensor behaves as the tensor it is made of, and carries a note. Where a network calls torch with one,
the network's own result is computed first, without gradients, and the follower then says what note the result has.
This needs no symbolic trace, so whatever runs can be followed: control flow, lists of blocks, in-place operations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.subjects.hooks import as_written, visited, with_first_tensor
from skiplab.subjects.subject import first_tensor
from skiplab.subjects.untouched import PlainTensors
from skiplab.torch_private import tree_leaves, tree_map, tree_map_only

# Functions that take only the shape and the type of what they are given.
FRESH = frozenset(
    {f"new_{kind}" for kind in ("zeros", "ones", "full", "empty", "tensor")}
    | {f"{kind}_like" for kind in ("zeros", "ones", "full", "empty", "rand", "randn")}
)
EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


@dataclass(frozen=True)
class Call:
    """One call: ``number`` counts them in a pass, ``args`` hold followed tensors, ``values`` plain ones as they were.

    ``outcome`` is what the call returned, plain; ``scope`` names the module in whose forward pass it was made.
    """

    number: int
    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    values: tuple[tuple[Any, ...], dict[str, Any]]
    outcome: Any
    scope: str

    @property
    def followed(self) -> list[Followed]:
        """The followed tensors among the arguments, in order; one that is given twice appears twice."""
        return [leaf for leaf in tree_leaves((self.args, self.kwargs)) if isinstance(leaf, Followed)]

    @property
    def taken(self) -> list[Tensor]:
        """The followed tensors as plain ones, with the values that they had before the call."""
        pairs = zip(tree_leaves((self.args, self.kwargs)), tree_leaves(self.values), strict=True)
        return [plain for leaf, plain in pairs if isinstance(leaf, Followed)]

    @property
    def given(self) -> list[Tensor]:
        """The other tensors among the arguments."""
        leaves = tree_leaves((self.args, self.kwargs))
        return [leaf for leaf in leaves if isinstance(leaf, Tensor) and not isinstance(leaf, Followed)]


class Followed(Tensor):
    """A tensor under observation; ``note`` is its follower's."""

    follower: Follower
    note: Any

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        leaves = tree_leaves((args, kwargs))
        follower = next(leaf.follower for leaf in leaves if isinstance(leaf, Followed))
        return follower.called(func, args, kwargs)


class Follower(ABC):
    """Sees one forward pass: subclasses say what note a call's results have."""

    def __init__(self) -> None:
        self.calls = 0
        self.scopes = [""]
        self.output: Tensor | None = None

    @abstractmethod
    def follow(self, call: Call) -> Any:
        """The note of a call's result; of a tuple of results, a tuple of notes. None: it is not followed further."""

    @abstractmethod
    def source(self, value: Tensor) -> Any:
        """The note of a tensor with which the pass begins: the input, or what an embedding returned."""

    def leave(self, name: str, tensor: Followed) -> None:  # noqa: B027 - few followers care
        """Be told of what a module returns."""

    def started(self, value: Tensor) -> Tensor:
        """The tensor as one that is followed from here; integers, such as tokens, are not."""
        if isinstance(value, Followed) or not value.is_floating_point():
            return value
        return self._followed(value, self.source(value))

    def called(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Compute what the network computes, and follow it."""
        name = _name(function)
        with PlainTensors():
            plain = tree_map(_plain, (args, kwargs))
            # An in-place function changes what it is given, and a rule needs what that was.
            before = tree_map(_copy, plain) if _changes(name, kwargs) else plain
            with torch.no_grad():
                outcome = function(*plain[0], **plain[1])
        if not any(isinstance(leaf, Tensor) and leaf.is_floating_point() for leaf in tree_leaves(outcome)):
            return outcome  # a shape, a type, a comparison
        self.calls += 1
        call = Call(self.calls, name.strip("_"), function, args, kwargs, before, outcome, self.scopes[-1])
        with PlainTensors():
            note = self.follow(call)
        if isinstance(outcome, Tensor):
            return self._returned(outcome, note, plain[0], args)
        notes = [None] * len(outcome) if note is None else note
        pairs = zip(outcome, notes, strict=True)
        several = [self._followed(each, own) if isinstance(each, Tensor) else each for each, own in pairs]
        return type(outcome)(*several) if hasattr(outcome, "_fields") else type(outcome)(several)

    def _returned(self, outcome: Tensor, note: Any, plain: tuple[Any, ...], args: tuple[Any, ...]) -> Tensor:
        # An in-place function returns its argument, whose other holders must see the new note too.
        if plain and outcome is plain[0] and isinstance(args[0], Followed):
            args[0].note = note
            return args[0]
        return self._followed(outcome, note)

    def _followed(self, value: Tensor, note: Any) -> Tensor:
        if note is None or not value.is_floating_point():
            return value
        with PlainTensors():
            followed = value.detach().as_subclass(Followed)
        followed.follower, followed.note = self, note
        return followed

    @contextmanager
    def watching(self, module: nn.Module) -> Iterator[None]:
        """Follow the module's input and its embeddings' outputs, and know where calls are made, while this lasts.

        What the module returns is kept as ``output`` and goes on plain: a loss behind it is not followed. Where parts
        are called and not the module, as by Lightning's training_step, their inputs and outputs are meant.
        """
        names = {part: name for name, part in module.named_modules()}

        def enter(part: nn.Module, args: Any, kwargs: Any) -> Any:
            is_outermost = len(self.scopes) == 1
            self.scopes.append(names[part])
            return tree_map_only(Tensor, self.started, (args, kwargs)) if is_outermost else None

        def leave(part: nn.Module, _: Any, __: Any, output: Any) -> Any:
            self.scopes.pop()
            if isinstance(part, EMBEDDINGS):
                return with_first_tensor(names[part], output, self.started)
            if len(self.scopes) == 1:
                self.output = first_tensor(output)
                with PlainTensors():
                    return tree_map(_plain, output)
            first = next(iter(tree_leaves(output)), None)
            if isinstance(first, Followed):
                self.leave(names[part], first)
            return None

        hooks = visited(before=[(part, enter) for part in names], after=[(part, leave) for part in names])
        with as_written(module), hooks:  # a compiled pass makes no calls that could be followed
            yield


def _name(function: Any) -> str:
    name = getattr(function, "__name__", "?")
    # An attribute of a tensor, such as .mT, is read through its descriptor.
    return str(function.__self__.__name__) if name == "__get__" else str(name)


def _plain(leaf: Any) -> Any:
    return leaf.as_subclass(Tensor) if isinstance(leaf, Followed) else leaf


def _copy(leaf: Any) -> Any:
    return leaf.clone() if isinstance(leaf, Tensor) else leaf


def _changes(name: str, kwargs: dict[str, Any]) -> bool:
    return (
        bool(kwargs.get("inplace"))
        or (name.endswith("_") and not name.endswith("__"))
        or name == "__setitem__"
    )
