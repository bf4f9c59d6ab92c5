"""A single network's products on a GPU as CUDA graphs: hundreds of short kernels that one call starts.

One network of 30 × 128 units takes some 300 kernels per product, each shorter than the time in which Python starts
the next. A graph is recorded where a product comes back in the same shape, as in Lanczos' iteration; it is used only
if its first answer is, vector by vector, the one that the kernels gave when started one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from skiplab import linear_algebra as la
from skiplab.cuda_graphs import GraphRecorder
from skiplab.curvature.agreement import close
from skiplab.curvature.sweeps.recording import Unsupported

Multiply = Callable[[Tensor], Tensor]
Record = Callable[[Multiply, Tensor], Multiply]  # what replays a product, shown with vectors of its shape
WORTH_RECORDING = 3  # at the third product of a shape: recording takes about as long as four products
SHAPES = 2  # whole chunks of vectors and a last, shorter one; each shape keeps memory of its own
# A graph keeps what a product takes, per vector about as much as the route keeps: only where this many times is free.
ROOM = 4


class FixedRoute(Protocol):
    """A route whose products can be started by the same kernels whatever the vectors hold."""

    name: str

    def product(self, vectors: Tensor) -> Tensor:
        """Multiply (L, P), in the way that is fastest for these vectors."""

    def fixed_product(self, vectors: Tensor) -> Tensor:
        """The same without reading anything back, in memory that nothing else uses."""

    def nbytes(self) -> int:
        """Memory of what is kept between products."""

    def matrix(self, room: int) -> Tensor:
        """The whole matrix (P, P), or Unsupported."""

    def forget(self) -> None:
        """Keep nothing between products from now on."""


class Replayed:
    """A route whose products are replayed from the third of a shape on; ``why_not`` says what spoke against it.

    A replay keeps the matrix products' precision of its recording, and serves one stream at a time.
    """

    def __init__(self, route: FixedRoute, record: Record) -> None:
        self._route, self._record = route, record
        self._seen: dict[torch.Size, int] = {}
        self._replays: dict[torch.Size, Multiply] = {}
        self._possible = True
        self.why_not = ""
        self.name = route.name

    def product(self, vectors: Tensor) -> Tensor:
        """Multiply vectors (L, P) of a single network."""
        shape = vectors.shape
        if shape not in self._replays and self._worth_recording(shape):
            return self._recorded(vectors)
        if shape in self._replays:
            return self._replays[shape](vectors)
        return self._route.product(vectors)

    def nbytes(self) -> int:
        """Memory of what the route keeps, a graph's own not counted."""
        return self._route.nbytes()

    def matrix(self, room: int) -> Tensor:
        """The whole matrix (P, P), as the route computes it."""
        return self._route.matrix(room)

    def forget(self) -> None:
        """Keep nothing between products from now on, no graph either."""
        self._possible = False
        self._replays.clear()
        self._route.forget()

    def _worth_recording(self, shape: torch.Size) -> bool:
        self._seen[shape] = self._seen.get(shape, 0) + 1
        often = self._seen[shape] >= WORTH_RECORDING
        return self._possible and often and len(self._replays) < SHAPES

    def _recorded(self, vectors: Tensor) -> Tensor:
        """A product started kernel by kernel, after which its graph is there if it gives the same."""
        answer = self._route.product(vectors)
        lengths = answer.norm(dim=1)
        if not ((lengths > 0) & lengths.isfinite()).all():
            return answer  # it could not be compared with a replay; a later product may
        if ROOM * len(vectors) * self._route.nbytes() > la.available_bytes(vectors.device):
            self._give_up("less memory is free than a graph may take")
            return answer
        try:
            # Of other vectors: a replay that gave what was recorded, whatever it is given, would pass the comparison.
            replay = self._record(self._route.fixed_product, torch.zeros_like(vectors))
            if close(replay(vectors), answer, dim=1):
                self._replays[vectors.shape] = replay
                return answer
            self._give_up("the replayed product is not that of the kernels")
        except (RuntimeError, Unsupported) as error:
            # No memory left, or an operation that a graph cannot hold.
            self._give_up(str(error).partition("\n")[0] or type(error).__name__)
        return answer

    def _give_up(self, reason: str) -> None:
        self._possible, self.why_not = False, reason


class ProductGraphs:
    """Records the products of one operator's routes as CUDA graphs that share their memory.

    Routes are replayed one after the other, so that all read their vectors in one place and write their answers to
    another, from which they are copied at once. Where one product cannot be captured, none of the same ``kind`` of
    operator is in this process (``GraphRecorder`` says what a failed capture leaves behind).
    """

    def __init__(self, kind: str) -> None:
        self._kind, self._recorder = kind, GraphRecorder()
        self._places: dict[torch.Size, tuple[Tensor, Tensor]] = {}

    def __call__(self, multiply: Multiply, vectors: Tensor) -> Multiply:
        """Record the kernels of a product; what comes back copies its vectors in and its answer out."""
        if vectors.shape not in self._places:
            self._places[vectors.shape] = torch.empty_like(vectors), torch.empty_like(vectors)
        given, answer = self._places[vectors.shape]
        given.copy_(vectors)
        graph, _ = self._recorder.recorded(lambda: answer.copy_(multiply(given)), vectors.device, self._kind)

        def replay(vectors: Tensor) -> Tensor:
            given.copy_(vectors)
            graph.replay()
            return answer.clone()

        return replay
