"""A recorded product is used from the third of a shape on where it gives the same, and is given up otherwise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab import linear_algebra as la
from skiplab.architectures.fully_connected import PlainNet
from skiplab.architectures.initialisers import Glorot
from skiplab.cuda_graphs import GraphRecorder
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.sweeps import replayed
from skiplab.curvature.sweeps.forward_mode import ForwardMode
from skiplab.curvature.sweeps.replayed import Multiply, ProductGraphs, Replayed
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

X = torch.randn(20, 5, generator=torch_generator("replayed inputs"), dtype=torch.float64)
Y = torch.randint(3, (20,), generator=torch_generator("replayed labels"))


def route() -> tuple[ForwardMode, int]:
    network = PlainNet(
        5, 6, 3, 3, generator=torch_generator("replayed net"), init=Glorot(1.2), dtype=torch.float64
    )
    subject = Subject.of(network, criterion=nn.CrossEntropyLoss())
    names = tuple(subject.parameters)
    return ForwardMode(subject, (X, Y), names), sum(each[0].numel() for each in subject.parameters.values())


def vectors(count: int, size: int, seed: int) -> Tensor:
    return torch.randn(count, size, generator=torch_generator("replayed", seed), dtype=torch.float64)


class Recorder:
    """As a CUDA graph, it runs what it was shown, on what is copied into its own memory; and counts.

    What it gives is multiplied by ``change``, a number or one for each vector.
    """

    def __init__(self, change: float | Tensor = 1.0) -> None:
        self.recorded: list[tuple[int, ...]] = []
        self.replayed = 0
        self.change = change

    def __call__(self, multiply: Multiply, vectors: Tensor) -> Multiply:
        self.recorded.append(tuple(vectors.shape))
        static = vectors.clone()

        def replay(vectors: Tensor) -> Tensor:
            self.replayed += 1
            static.copy_(vectors)
            return self.change * multiply(static)

        return replay


def test_a_product_whose_kernels_are_fixed_is_the_same_and_leaves_the_shared_memory_alone() -> None:
    plain, size = route()
    some = vectors(4, size, 0)
    some[:, :30] = 0  # the first layer, which the ordinary sweep passes by
    expected = plain.product(some)
    shared, untouched = plain._space, object()  # whoever asks that one for memory fails
    plain._space = untouched  # type: ignore[assignment]
    torch.testing.assert_close(plain.fixed_product(some), expected, rtol=1e-12, atol=1e-14)
    assert plain._space is untouched
    plain._space = shared
    torch.testing.assert_close(plain.product(some), expected, rtol=0, atol=0)


def test_it_is_recorded_at_the_third_product_of_a_shape_and_replayed_afterwards() -> None:
    plain, size = route()
    recorder = Recorder()
    fast = Replayed(plain, recorder)
    for turn in range(6):
        some = vectors(4, size, turn)
        torch.testing.assert_close(fast.product(some), plain.product(some), rtol=1e-12, atol=1e-14)
    assert recorder.recorded == [(4, size)]
    assert recorder.replayed == 1 + 3  # the check, then the fourth to the sixth
    assert fast.why_not == ""


def test_two_shapes_are_kept_and_no_third() -> None:
    plain, size = route()
    recorder = Recorder()
    fast = Replayed(plain, recorder)
    for turn in range(4):
        for count in (1, 2, 3):
            some = vectors(count, size, turn)
            torch.testing.assert_close(fast.product(some), plain.product(some), rtol=1e-12, atol=1e-14)
    assert recorder.recorded == [(1, size), (2, size)]


@pytest.mark.parametrize(
    "change", [1.001, torch.tensor([[1.0], [1.001]])], ids=["in all vectors", "in one of far shorter ones"]
)
def test_a_recording_that_gives_something_else_is_never_used(change: float | Tensor) -> None:
    plain, size = route()
    recorder = Recorder(change)
    fast = Replayed(plain, recorder)
    for turn in range(6):
        some = vectors(2, size, turn) * torch.tensor([[1e12], [1.0]])
        torch.testing.assert_close(fast.product(some), plain.product(some), rtol=1e-12, atol=1e-14)
    assert recorder.replayed == 1
    assert fast.why_not == "the replayed product is not that of the kernels"


def test_a_recording_that_gives_what_it_was_recorded_with_is_never_used() -> None:
    plain, size = route()

    def stale(multiply: Multiply, vectors: Tensor) -> Multiply:
        kept = multiply(vectors)
        return lambda vectors: kept.clone()

    fast = Replayed(plain, stale)
    for turn in range(6):
        some = vectors(2, size, turn)
        torch.testing.assert_close(fast.product(some), plain.product(some), rtol=1e-12, atol=1e-14)
    assert fast.why_not == "the replayed product is not that of the kernels"


def test_what_cannot_be_recorded_goes_on_kernel_by_kernel_and_says_why() -> None:
    plain, size = route()
    tries = []

    def failing(multiply: Multiply, vectors: Tensor) -> Multiply:
        tries.append(vectors.shape)
        raise RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors might")

    fast = Replayed(plain, failing)
    for turn in range(6):
        some = vectors(2, size, turn)
        torch.testing.assert_close(fast.product(some), plain.product(some), rtol=1e-12, atol=1e-14)
    assert len(tries) == 1
    assert fast.why_not == "operation not permitted when stream is capturing"


@pytest.mark.parametrize("unusual", [float("nan"), 0.0, 1e200])  # the last one's length overflows
def test_an_answer_without_a_length_is_not_compared_with_a_replay(unusual: float) -> None:
    plain, size = route()
    recorder = Recorder(change=7.0)
    fast = Replayed(plain, recorder)
    for turn in range(3):
        some = vectors(2, size, turn)
        some[1] *= unusual if turn == 2 else 1.0
        fast.product(some)
    assert (recorder.recorded, fast.why_not) == ([], "")
    fast.product(vectors(2, size, 3))
    assert recorder.recorded == [(2, size)]
    assert fast.why_not == "the replayed product is not that of the kernels"


def test_an_operator_says_why_its_products_are_not_replayed() -> None:
    network = PlainNet(5, 6, 3, 3, generator=torch_generator("replayed net"), dtype=torch.float64)
    product = HessianProduct(network, (X, Y), criterion=nn.CrossEntropyLoss())
    (members, weight, plain), *_ = product._parts
    assert isinstance(plain, ForwardMode)
    fast = Replayed(plain, Recorder(change=2.0))
    product._parts = [(members, weight, fast)]
    for turn in range(3):
        assert product.route == "forward mode"
        product(vectors(1, product.dimension, turn)[None])
    assert product.route == "forward mode, kernel by kernel: the replayed product is not that of the kernels"
    assert product.by_hand


def test_products_of_one_operator_share_a_recorder_and_the_places_of_vectors_and_answers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds: list[str] = []
    places: list[tuple[int, ...]] = []

    class Graph:
        def __init__(self, function: Callable[[], Tensor]) -> None:
            self.replay = function

    def recorded(self: Any, function: Callable[[], Tensor], device: torch.device, kind: str) -> Any:
        kinds.append(kind)
        answer = function()
        places[-1] += (answer.data_ptr(),)
        return Graph(function), answer

    def times(factor: float) -> Multiply:
        def multiply(vectors: Tensor) -> Tensor:
            places.append((vectors.data_ptr(),))
            return factor * vectors

        return multiply

    monkeypatch.setattr(GraphRecorder, "recorded", recorded)
    record = ProductGraphs("some kind")
    shown = torch.zeros(2, 3)
    replays = [record(times(factor), shown) for factor in (2.0, 3.0)]
    assert places[0] == places[1]
    assert len({*places[0], shown.data_ptr()}) == 3
    record(times(1.0), torch.zeros(1, 3))  # vectors of another shape have places of their own
    assert not set(places[2]) & set(places[0])
    answers = [replay(torch.full((2, 3), value)) for replay in replays for value in (1.0, 5.0)]
    assert [float(answer[0, 0]) for answer in answers] == [2.0, 10.0, 3.0, 15.0]
    assert kinds == ["some kind"] * 3


def test_nothing_is_recorded_where_memory_is_short_nor_after_forgetting() -> None:
    plain, size = route()
    recorder = Recorder()
    with la.allowing(replayed.ROOM * 2 * plain.nbytes() - 1):  # for two vectors
        short = Replayed(plain, recorder)
        for turn in range(4):
            short.product(vectors(2, size, turn))
    assert short.why_not == "less memory is free than a graph may take"
    fast = Replayed(plain, recorder)
    expected = [fast.product(vectors(2, size, turn)) for turn in range(4)]
    assert recorder.recorded == [(2, size)]
    fast.forget()
    before = recorder.replayed
    for turn, answer in enumerate(expected):
        torch.testing.assert_close(fast.product(vectors(2, size, turn)), answer, rtol=1e-12, atol=1e-14)
    assert recorder.recorded == [(2, size)]
    assert recorder.replayed == before
