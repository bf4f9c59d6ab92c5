"""A single network's products on a GPU as CUDA graphs: hundreds of short kernels that one call starts.

One network of 30 × 128 units takes some 300 kernels per product, each shorter than the time in which Python starts
the next. A graph is recorded where a product comes back in the same shape, as in Lanczos' iteration; it is used only
if its first answer is the one that the kernels gave when started one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import torch
from torch import Tensor

from skiplab import linear_algebra as la
from skiplab.curvature.agreement import close
from skiplab.curvature.sweeps.recording import Unsupported

Multiply = Callable[[Tensor], Tensor]
WORTH_RECORDING = 3  # at the third product of a shape: recording takes about as long as four products
SHAPES = 2  # whole chunks of vectors and a last, shorter one; each shape keeps memory of its own
WARM_UPS = 3  # products on a side stream before a capture, as torch.cuda.graph asks for
# A graph keeps what a product takes, per vector about as much as the route keeps: only where this many times is free.
ROOM = 4


class Fixed(Protocol):
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

    def __init__(self, route: Fixed, record: Callable[[Multiply, Tensor], Multiply] | None = None) -> None:
        self._route, self._record = route, record or cuda_graph
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
        if not answer.isfinite().all():
            return answer  # it could not be compared with a replay; a later product may
        if ROOM * len(vectors) * self._route.nbytes() > la.available_bytes(vectors.device):
            self._give_up("less memory is free than a graph may take")
            return answer
        try:
            replay = self._record(self._route.fixed_product, vectors)
            if close(replay(vectors), answer):
                self._replays[vectors.shape] = replay
                return answer
            self._give_up("the replayed product is not that of the kernels")
        except (RuntimeError, Unsupported) as error:
            # No memory left, or an operation that a graph cannot hold.
            self._give_up(_first_line(error))
        return answer

    def _give_up(self, reason: str) -> None:
        self._possible, self.why_not = False, reason


def _first_line(error: BaseException) -> str:
    """What went wrong first: the end of a capture that an error broke off raises an error of its own."""
    while isinstance(error.__context__, RuntimeError | Unsupported):
        error = error.__context__
    return str(error).partition("\n")[0] or type(error).__name__


def cuda_graph(multiply: Multiply, vectors: Tensor) -> Multiply:
    """Record the kernels of a product; what comes back copies its vectors in and its answer out.

    Warm-ups and capture share a stream, so that derivatives which autograd keeps for the stream are there before the
    capture (``streams``).
    """
    static = vectors.clone()
    side = torch.cuda.Stream(vectors.device)
    side.wait_stream(torch.cuda.current_stream(vectors.device))
    with torch.cuda.stream(side):
        for _ in range(WARM_UPS):
            multiply(static)
        graph = torch.cuda.CUDAGraph()
        # Other threads may go on with work of their own meanwhile.
        with torch.cuda.graph(graph, stream=side, capture_error_mode="thread_local"):
            answer = multiply(static)
    torch.cuda.current_stream(vectors.device).wait_stream(side)

    def replay(vectors: Tensor) -> Tensor:
        static.copy_(vectors)
        graph.replay()
        return answer.clone()

    return replay
