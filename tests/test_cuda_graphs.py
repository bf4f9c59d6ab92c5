"""Functions are recorded on one stream, in memory that the graphs share; what failed once is not tried again.

Streams and graphs are stand-ins for those of a GPU; ``tests/curvature/test_gpu.py`` records on one.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from skiplab import cuda_graphs
from skiplab.cuda_graphs import WARM_UPS, GraphRecorder, NotRecorded, held_bytes

GPU = torch.device("cuda", 0)


class Stream:
    def __init__(self, device: torch.device | None = None) -> None:
        self.waited: list[Stream] = []

    def wait_stream(self, other: Stream) -> None:
        self.waited.append(other)


class Graph:
    number = 0

    def __init__(self) -> None:
        self.own: tuple[int, int] | None = None

    def pool(self) -> tuple[int, int]:
        assert self.own is not None
        return self.own


class Gpu:
    """What the recorder asks of a GPU; ``fails`` is what ends a capture."""

    def __init__(self) -> None:
        self.current = self.main = Stream()
        self.fails = ""
        self.captures: list[Stream] = []
        self.modes: set[str] = set()

    @contextlib.contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        before, self.current = self.current, stream
        try:
            yield
        finally:
            self.current = before

    @contextlib.contextmanager
    def graph(
        self, graph: Graph, pool: tuple[int, int] | None, stream: Stream, capture_error_mode: str
    ) -> Iterator[None]:
        Graph.number += 1
        graph.own = pool or (0, Graph.number)
        self.captures.append(stream)
        self.modes.add(capture_error_mode)
        self.current = stream
        try:
            yield
        finally:
            if self.fails:
                raise RuntimeError(self.fails)  # as torch.cuda.graph does, leaving its stream the current one


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    found = Gpu()
    for name, value in {
        "Stream": Stream,
        "CUDAGraph": Graph,
        "stream": found.stream,
        "graph": found.graph,
        "current_stream": lambda device: found.current,
    }.items():
        monkeypatch.setattr(torch.cuda, name, value)
    monkeypatch.setattr(cuda_graphs, "_FAILED", {})
    return found


def counting(seen: list[Any], gpu: Gpu) -> Callable[[], int]:
    def function() -> int:
        seen.append(gpu.current)
        return len(seen)

    return function


def test_warm_ups_and_capture_are_on_one_stream_that_the_callers_waits_for(gpu: Gpu) -> None:
    seen: list[Any] = []
    _, result = GraphRecorder().recorded(counting(seen, gpu), GPU)
    assert result == WARM_UPS + 1
    (side,) = set(seen)
    assert side is not gpu.main
    assert gpu.captures == [side]
    assert side.waited == [gpu.main]
    assert gpu.main.waited == [side]
    assert gpu.current is gpu.main
    assert gpu.modes == {"thread_local"}


def test_graphs_of_a_recorder_share_stream_and_memory_as_long_as_one_lives(gpu: Gpu) -> None:
    recorder, seen = GraphRecorder(), []
    graphs = [recorder.recorded(counting(seen, gpu), GPU)[0] for _ in range(3)]
    first = graphs[0].pool()
    assert {graph.pool() for graph in graphs} == {first}
    assert len(set(gpu.captures)) == 1
    del graphs[:2]
    gc.collect()
    graphs.append(recorder.recorded(counting(seen, gpu), GPU)[0])
    assert graphs[-1].pool() == first
    graphs.clear()
    gc.collect()
    assert recorder.recorded(counting(seen, gpu), GPU)[0].pool() != first
    assert GraphRecorder().recorded(counting(seen, gpu), GPU)[0].pool() != first


def test_memory_of_graphs_that_are_gone_is_not_held(gpu: Gpu, monkeypatch: pytest.MonkeyPatch) -> None:
    recorders, seen = [GraphRecorder() for _ in range(2)], []
    one, other = (recorder.recorded(counting(seen, gpu), GPU)[0] for recorder in recorders)
    pools = {one.pool(): 1, other.pool(): 10, (7, 7): 100}  # the last one is somebody else's
    monkeypatch.setattr(cuda_graphs, "private_pools", lambda device: pools)
    assert held_bytes(GPU) == 111
    del one
    gc.collect()
    assert held_bytes(GPU) == 110
    gpu.fails = "capture failed"
    with pytest.raises(NotRecorded):
        recorders[1].recorded(counting(seen, gpu), GPU)
    del other
    gc.collect()
    assert held_bytes(GPU) == 110  # a failed capture keeps its memory


def test_a_kind_that_could_not_be_captured_is_not_tried_again(gpu: Gpu) -> None:
    seen: list[Any] = []
    gpu.fails = "operation failed due to a previous error during capture"

    def failing() -> None:
        seen.append(gpu.current)
        if len(seen) > WARM_UPS:
            raise ValueError("cannot be captured\nand more")

    recorder = GraphRecorder()
    try:
        raise KeyError("what the caller is in the middle of")
    except KeyError:
        with pytest.raises(NotRecorded, match=r"^cannot be captured$"):
            recorder.recorded(failing, GPU, "one kind")
    assert gpu.current is gpu.main
    gpu.fails = ""
    for again in (recorder, GraphRecorder()):
        with pytest.raises(NotRecorded, match=r"^cannot be captured$"):
            again.recorded(failing, GPU, "one kind")
    assert len(seen) == WARM_UPS + 1
    recorder.recorded(counting([], gpu), GPU, "another kind")
    assert gpu.captures[0] is not gpu.captures[-1]


def test_what_has_no_kind_or_fails_before_the_capture_may_be_tried_again(gpu: Gpu) -> None:
    recorder, tries = GraphRecorder(), []

    def short_of_memory() -> None:
        tries.append(None)
        if len(tries) == 1:
            raise MemoryError("no memory left")

    with pytest.raises(MemoryError):
        recorder.recorded(short_of_memory, GPU, "one kind")
    recorder.recorded(short_of_memory, GPU, "one kind")
    gpu.fails = "broken"
    with pytest.raises(NotRecorded, match="broken"):
        recorder.recorded(counting([], gpu), GPU)
    gpu.fails = ""
    recorder.recorded(counting([], gpu), GPU)
