"""Derivatives that autograd keeps are those of the stream that computes: a CUDA graph records one stream.

A CPU has one stream, so here streams are numbers that the tests give.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.curvature.sweeps import streams
from skiplab.curvature.sweeps.forward_mode import ForwardMode
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject


def normal(*shape: int, seed: str) -> Tensor:
    return torch.randn(*shape, generator=torch_generator("streams", seed), dtype=torch.float64)


X, LABELS = normal(7, 1, 6, 6, seed="x"), torch.tensor([0, 2, 1, 1, 0, 2, 2])
NUMBERS, WEIGHT = normal(7, 3, seed="y"), torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)
CRITERIA: dict[str, tuple[Any, Tensor]] = {
    "cross-entropy by hand": (nn.CrossEntropyLoss(), LABELS),
    "cross-entropy": (F.cross_entropy, LABELS),
    "weights and ignored labels": (nn.CrossEntropyLoss(weight=WEIGHT, ignore_index=1), LABELS),
    "smoothed": (partial(F.cross_entropy, weight=WEIGHT, label_smoothing=0.1), LABELS),
    "probabilities": (F.cross_entropy, NUMBERS.softmax(-1)),
    "squared error": (nn.MSELoss(), NUMBERS),
    "smooth absolute error": (nn.SmoothL1Loss(), NUMBERS),
    "logits": (nn.BCEWithLogitsLoss(pos_weight=WEIGHT), NUMBERS.sigmoid()),
    "counts": (nn.PoissonNLLLoss(), NUMBERS.exp().round()),
    "one's own": (lambda output, target: (output - target).pow(4).mean(), NUMBERS),
}


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Which stream computes, and whether it is being recorded."""
    now = {"number": 0, "recorded": False}
    monkeypatch.setattr(streams, "stream_number", lambda device: now["number"])
    monkeypatch.setattr(streams, "is_recorded", lambda device: now["recorded"])
    return now


@pytest.fixture
def oldest(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """For each derivative that was taken, the number of the oldest operation that it went through."""
    seen: list[int] = []
    plain = torch.autograd.grad

    def grad(outputs: Any, *args: Any, **options: Any) -> Any:
        each = [outputs] if isinstance(outputs, Tensor) else outputs
        seen.append(min(number for output in each for number in operations(output)))
        return plain(outputs, *args, **options)

    monkeypatch.setattr(torch.autograd, "grad", grad)
    return seen


def operations(output: Tensor) -> Iterator[int]:
    left, met = [output.grad_fn], set()
    while left:
        node: Any = left.pop()
        if node is not None and node not in met:
            met.add(node)
            yield node._sequence_nr()
            left.extend(following for following, _ in node.next_functions)


def this_moment() -> int:
    number: Any = torch.zeros(1, requires_grad=True).exp().grad_fn
    return number._sequence_nr()


def route(criterion: Any, target: Tensor) -> tuple[ForwardMode, int]:
    """A network with maps (pooling, flattening) whose transposes are autograd's."""
    network = nn.Sequential(
        nn.Conv2d(1, 2, 3),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(8, 4),
        nn.ReLU(),
        nn.Linear(4, 3),
    ).double()
    with torch.no_grad():
        for place, parameter in enumerate(network.parameters()):
            parameter.copy_(normal(*parameter.shape, seed=f"parameter {place}"))
    subject = Subject.of(network, criterion=criterion)
    names = tuple(subject.parameters)
    return ForwardMode(subject, (X, target), names), sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize("name", CRITERIA)
def test_a_product_on_another_stream_goes_through_nothing_recorded_on_the_first(
    name: str, stream: dict[str, Any], oldest: list[int]
) -> None:
    plain, size = route(*CRITERIA[name])
    vectors = normal(3, size, seed="v")
    expected, fixed = plain.product(vectors), plain.fixed_product(vectors)
    stream["number"] = 1
    begun = this_moment()
    oldest.clear()
    assert torch.equal(plain.fixed_product(vectors), fixed)
    assert oldest
    assert min(oldest) > begun
    stream["number"] = 0
    assert torch.equal(plain.product(vectors), expected)


@pytest.mark.parametrize("name", CRITERIA)
def test_a_recording_takes_the_derivatives_that_warm_ups_left_on_its_stream(
    name: str, stream: dict[str, Any], oldest: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, size = route(*CRITERIA[name])
    vectors = normal(3, size, seed="v")
    fixed = plain.fixed_product(vectors)
    stream["number"] = 1
    begun = this_moment()
    plain.fixed_product(vectors)
    warmed = this_moment()
    stream["recorded"] = True
    oldest.clear()
    # A criterion may read numbers back, which a recording does not allow.
    monkeypatch.setattr(plain._current().head, "_criterion", None)
    assert torch.equal(plain.fixed_product(vectors), fixed)
    assert oldest
    assert all(begun < number < warmed for number in oldest)


def test_every_stream_has_a_leaf_of_its_own(stream: dict[str, Any]) -> None:
    """Autograd gives a leaf, too, the stream on which it was first used."""
    plain, size = route(*CRITERIA["cross-entropy"])
    for number in (0, 1):
        stream["number"] = number
        plain.fixed_product(normal(3, size, seed="v"))
    graphs = plain._current().head._graphs
    assert len(graphs) == 2
    assert len({id(graph.output) for graph in graphs.values()}) == 2


def test_what_is_made_during_a_recording_is_not_kept(stream: dict[str, Any]) -> None:
    kept: dict[tuple[str, int], object] = {}
    here = torch.device("cpu")
    first = streams.kept_for_stream(kept, "a", here, object)
    assert streams.kept_for_stream(kept, "a", here, object) is first
    assert streams.kept_for_stream(kept, "b", here, object) is not first
    stream.update(number=1, recorded=True)
    other = streams.kept_for_stream(kept, "a", here, object)
    assert other is not first
    assert streams.kept_for_stream(kept, "a", here, object) is not other
    assert sorted(kept) == [("a", 0), ("b", 0)]


def test_a_cpu_has_one_stream_that_nobody_records() -> None:
    here = torch.device("cpu")
    assert (streams.stream_number(here), streams.is_recorded(here)) == (0, False)
