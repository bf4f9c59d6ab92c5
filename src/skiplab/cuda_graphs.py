"""CUDA graphs: the kernels that a function starts, recorded once, so that one call starts them all again.

What was computed while a graph was recorded lies in a private pool of torch's allocator for as long as the graph
lives: nothing else may use it, though torch counts it as reserved and not handed out (``held_bytes``).
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable
from typing import TypeVar

import torch

from skiplab.torch_private import private_pools

WARM_UPS = 3  # runs on a side stream before a capture, as torch.cuda.graph asks for
Result = TypeVar("Result")

_GRAPHS: weakref.WeakSet[torch.cuda.CUDAGraph] = (
    weakref.WeakSet()
)  # all that were recorded here and still live
_POOLS: set[tuple[int, int]] = set()  # where these and earlier ones have their memory
_FAILED: dict[str, str] = {}  # kinds of work that could not be captured in this process, and why


class NotRecorded(RuntimeError):
    """Kernels that could not be captured as a CUDA graph, now or earlier in this process; says why in one line."""


class GraphRecorder:
    """Records functions as CUDA graphs on one stream, in memory that all its graphs share.

    So no two of its graphs may be replayed at the same time, and what one gives is read before another is replayed.

    A kind of work whose capture failed is not tried again in this process: a failed capture leaves torch's allocator,
    before pytorch#180395 was mended always and since then in some cases, believing that a capture goes on. It then
    keeps that capture's memory, and gives back none that several streams have used, until the process ends.
    """

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._graphs: weakref.WeakSet[torch.cuda.CUDAGraph] = weakref.WeakSet()

    def recorded(
        self, function: Callable[[], Result], device: torch.device, kind: str = ""
    ) -> tuple[torch.cuda.CUDAGraph, Result]:
        """The graph of what a function starts, and its result, which each replay computes anew in place.

        Raise NotRecorded where that fails; ``kind`` says what failed with it, "" that another try is worthwhile.
        Warm-ups and capture share a stream, so that what autograd keeps for a stream is there before the capture.
        """
        if kind in _FAILED:
            raise NotRecorded(_FAILED[kind])
        current = torch.cuda.current_stream(device)
        side = self._stream = self._stream or torch.cuda.Stream(device)
        side.wait_stream(current)
        # A capture that fails leaves its stream the current one: the outer context puts back what was.
        with torch.cuda.stream(side):
            try:
                for _ in range(WARM_UPS):
                    function()
            finally:
                current.wait_stream(side)
            return self._captured(function, side, kind)

    def _captured(
        self, function: Callable[[], Result], side: torch.cuda.Stream, kind: str
    ) -> tuple[torch.cuda.CUDAGraph, Result]:
        graph, before = torch.cuda.CUDAGraph(), sys.exception()
        # A pool that no graph has any more cannot be shared.
        pool = next((each.pool() for each in self._graphs), None)
        try:
            # Other threads may go on with work of their own meanwhile.
            with torch.cuda.graph(graph, pool=pool, stream=side, capture_error_mode="thread_local"):
                result = function()
        except Exception as error:
            reason = _first_line(error, before)
            if kind:
                _FAILED[kind] = reason
            self._stream, self._graphs = None, weakref.WeakSet()
            _POOLS.discard(pool)  # it is held from now on, whether its graphs live or not
            raise NotRecorded(reason) from error
        self._graphs.add(graph)
        _GRAPHS.add(graph)
        _POOLS.add(graph.pool())
        return graph, result


def held_bytes(device: torch.device) -> int:
    """Bytes of a GPU that graphs hold although no tensor is in them.

    Pools of ours whose graphs are gone are left out: torch gives them back where memory is short.
    """
    gone = _POOLS - {graph.pool() for graph in _GRAPHS}
    return sum(size for pool, size in private_pools(device).items() if pool not in gone)


def _first_line(error: BaseException, before: BaseException | None) -> str:
    """What went wrong first: the end of a capture that an error broke off raises an error of its own."""
    while error.__context__ is not None and error.__context__ is not before:
        error = error.__context__
    return str(error).partition("\n")[0] or type(error).__name__
