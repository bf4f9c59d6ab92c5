"""A user's network and process as they were: what a forward pass changes beside parameters and buffers is put back.

Networks count their calls, keep lists and caches, draw from generators of their own or from numpy's and Python's,
register hooks, leave a ``weight`` behind (torch's old weight_norm, spectral_norm and pruning), or set threads and
types of the whole process. Here all of it is noted before and put back after, by identity and by value.

Followed are the attributes of every part of the network and, from there, lists, dicts, sets, deques, arrays, tensors,
random generators, and objects whose class is of the same package as the part's. Objects of other packages, such as a
logger or a trainer, may be in use by others meanwhile and are left alone.
"""

from __future__ import annotations

import contextlib
import operator
import random
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from skiplab.torch_private import without_subclasses

Undo = Callable[[], object]
# What nobody can change: most attributes of most parts, so these are passed over first.
_FIXED = frozenset(
    (type(None), bool, int, float, complex, str, bytes, type, range, torch.Size, torch.dtype, torch.device)
)
# Most others are empty, such as the hooks that a part might have.
_CONTAINERS = frozenset((dict, OrderedDict, list, set, deque))
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type)


class PutBack:
    """Calls of which each puts something back, made at the end whatever happens.

    Ctrl-C may come while they are made: then all of them are made once more, since making one twice does no harm.
    It may come where Python is on its way here and runs no ``finally``: whoever catches it calls ``put_back_since``.
    """

    def __init__(self, calls: Iterable[Undo]) -> None:
        self._calls = list(calls)

    def __enter__(self) -> None:
        _waiting().append(self)

    def __exit__(self, *_: object) -> None:
        try:
            self.now()
        finally:
            if self._calls:
                self.now()

    def now(self) -> None:
        """Put everything back, once: what the owner does afterwards is not ours to undo."""
        for call in self._calls:
            call()
        self._calls = []
        if self in _waiting():
            _waiting().remove(self)


class PlainTensors(PutBack):
    """A context in which functions do with a subclass of Tensor what they do with a Tensor."""

    def __init__(self) -> None:
        self._off = without_subclasses()
        super().__init__([partial(self._off.__exit__, None, None, None)])

    def __enter__(self) -> None:
        super().__enter__()  # first, so that Ctrl-C finds it noted whenever it comes
        self._off.__enter__()


_own = threading.local()


def _waiting() -> list[PutBack]:
    """What this thread has still to put back, the oldest first."""
    if not hasattr(_own, "waiting"):
        _own.waiting = []
    return _own.waiting


def waiting_now() -> int:
    """How many calls of this thread have something to put back."""
    return len(_waiting())


def put_back_since(number: int) -> None:
    """Put back what calls that Ctrl-C has ended did not; there were so many to put back before them."""
    for each in reversed(_waiting()[number:]):
        each.now()


@contextlib.contextmanager
def untouched(module: nn.Module) -> Iterator[None]:
    """Put back what is done to a network's attributes and to the process meanwhile, whatever happens."""
    with same_surroundings(), PutBack(_noted(module)):
        yield


@contextlib.contextmanager
def same_surroundings() -> Iterator[None]:
    """Fix the random streams of numpy and Python, and put them and the settings of torch back afterwards."""
    before: list[Undo] = [
        partial(np.random.set_state, np.random.get_state()),  # noqa: NPY002 - what users' networks draw from
        partial(random.setstate, random.getstate()),
        partial(_set_threads, torch.get_num_threads()),
        partial(torch.set_default_dtype, torch.get_default_dtype()),
        partial(torch.set_grad_enabled, torch.is_grad_enabled()),
    ]
    with PutBack(before):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        yield


def _set_threads(number: int) -> None:
    if torch.get_num_threads() != number:
        torch.set_num_threads(number)


def _noted(module: nn.Module) -> list[Undo]:
    """How to put back every attribute that can be reached from a network."""
    tensors, parts = [*module.parameters(), *module.buffers()], list(module.modules())
    gradients = [(tensor, tensor.grad) for tensor in tensors if tensor.is_leaf]
    # Parameters and buffers are called by copies (Subject.map_models), so their values need no note.
    seen: dict[int, Any] = {id(each): each for each in (*tensors, *parts)}
    empty: list[Any] = []
    waiting: deque[tuple[Any, str]] = deque()

    def look(inside: Iterable[Any], package: str) -> None:
        for value in inside:
            kind = type(value)
            if kind in _FIXED:
                continue
            if kind in _CONTAINERS and not value:
                empty.append(value)
            elif id(value) not in seen:
                waiting.append((value, package))

    def put_back() -> None:
        for each in empty:
            if each:
                each.clear()
        for tensor, gradient in gradients:
            if tensor.grad is not gradient:
                tensor.grad = gradient

    undo: list[Undo] = [put_back]
    for part in parts:
        own = vars(part)
        undo.append(_dict(own))
        look(own.values(), _package(part))
    while waiting:
        value, package = waiting.popleft()
        if id(value) not in seen:
            seen[id(value)] = value
            content, inside = _content(value, package)
            if content is not None:
                undo.append(content)
            look(inside, package)
    return undo


def _content(value: Any, package: str) -> tuple[Undo | None, Iterable[Any]]:
    """How to put back what a value holds now, and what is in it."""
    if isinstance(value, dict):
        return _dict(value), list(value.values())
    if isinstance(value, list):
        return _list(value), list(value)
    if isinstance(value, tuple | frozenset):
        return None, value
    if isinstance(value, set | deque):
        return _collection(value), list(value)
    if isinstance(value, Tensor):
        return _tensor(value), ()
    if isinstance(value, np.ndarray):
        return _array(value), ()
    for kind, read, write in _GENERATORS:
        if isinstance(value, kind):
            return partial(write, value, read(value)), ()
    followed = isinstance(value, nn.Module | types.SimpleNamespace) or _package(value) == package
    if followed and not isinstance(value, _FUNCTIONS) and hasattr(value, "__dict__"):
        return _dict(vars(value)), list(vars(value).values())
    return None, ()


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


_GENERATORS: tuple[tuple[type, Callable[[Any], Any], Callable[[Any, Any], Any]], ...] = (
    (torch.Generator, torch.Generator.get_state, torch.Generator.set_state),
    (np.random.RandomState, np.random.RandomState.get_state, np.random.RandomState.set_state),
    (random.Random, random.Random.getstate, random.Random.setstate),
    (
        np.random.Generator,
        lambda generator: generator.bit_generator.state,
        lambda generator, state: setattr(generator.bit_generator, "state", state),
    ),
)


def _same(now: Collection[Any], before: Collection[Any]) -> bool:
    """Whether two rows hold the same objects."""
    return len(now) == len(before) and all(map(operator.is_, now, before))


def _dict(held: dict[Any, Any]) -> Undo:
    before = dict(held)

    def put_back() -> None:
        if not (_same(held, before) and _same(held.values(), before.values())):
            held.clear()
            held.update(before)

    return put_back


def _list(held: list[Any]) -> Undo:
    before = list(held)

    def put_back() -> None:
        if not _same(held, before):
            held[:] = before

    return put_back


def _collection(held: set[Any] | deque[Any]) -> Undo:
    before = list(held)

    def put_back() -> None:
        if not _same(held, before):
            held.clear()
            held.extend(before) if isinstance(held, deque) else held.update(before)

    return put_back


def _array(held: np.ndarray) -> Undo:
    before = held.copy()

    def put_back() -> None:
        if held.flags.writeable and held.shape == before.shape:
            held[...] = before

    return put_back


def _tensor(held: Tensor) -> Undo | None:
    try:
        before = held.detach().clone()
    except RuntimeError:  # what a transform of torch.func left behind has no values any more
        return None

    def put_back() -> None:
        with torch.inference_mode(held.is_inference()), torch.no_grad():
            if not torch.equal(held, before):
                held.data.copy_(before)  # .data: autograd is not to hear of it

    return put_back
