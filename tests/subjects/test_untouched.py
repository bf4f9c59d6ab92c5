"""What is put back of a user's network and process, and what is left to others (all kinds: tests/contracts)."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from queue import SimpleQueue
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from skiplab.subjects import Subject
from skiplab.subjects.untouched import untouched

X = torch.ones(2, 3)


class Net(nn.Module):
    """A layer, and whatever a test hangs on it."""

    def __init__(self, **held: Any) -> None:
        super().__init__()
        self.layer = nn.Linear(3, 3)
        for name, value in held.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(x)


def test_nested_containers_are_put_back_in_place_and_in_order() -> None:
    inner: dict[str, list[int]] = defaultdict(list, a=[1], b=[2])
    net = Net(held=[inner, (inner["a"],)])

    def change() -> None:
        inner["a"].append(3)
        inner["c"].append(4)
        inner["b"] = inner.pop("b")
        del net.held[1]
        net.new = 1
        raise InterruptedError("midway")

    with pytest.raises(InterruptedError, match="midway"), untouched(net):
        change()
    assert list(inner.items()) == [("a", [1]), ("b", [2])]
    assert net.held == [inner, (inner["a"],)]
    assert net.held[0] is inner
    assert not hasattr(net, "new")


def test_a_ring_of_references_is_walked_once() -> None:
    ring: list[Any] = [1]
    ring.append(ring)
    net = Net(ring=ring)
    net.itself = [net]
    with untouched(net):
        ring.append(2)
    assert len(ring) == 2


def test_objects_of_other_packages_are_left_to_their_owners() -> None:
    """A queue that another thread empties must not be filled again."""
    queue: SimpleQueue[int] = SimpleQueue()
    lock, thread = threading.Lock(), threading.Thread()
    net = Net(queue=queue, lock=lock, thread=thread, module=np, function=len)
    with untouched(net):
        queue.put(1)
        thread.name = "renamed"
    assert queue.get() == 1
    assert thread.name == "renamed"


def test_a_tensor_is_put_back_without_a_word_to_autograd() -> None:
    kept = torch.zeros(3)
    net = Net(kept=kept, loose=[torch.full((2,), torch.nan)])
    with untouched(net):
        kept.data += 1
    assert kept.eq(0).all()
    assert kept._version == 0


def test_gradients_are_put_back() -> None:
    net = Net()
    net(X).sum().backward()
    gradient = net.layer.bias.grad
    with untouched(net):
        net.layer.bias.grad = None
    assert net.layer.bias.grad is gradient


def test_what_is_drawn_from_numpy_and_python_is_the_same_at_every_call() -> None:
    """As dropout's masks are: a measurement calls a network often, and it must be one function."""

    class Noisy(Net):
        def forward(self, x: Tensor) -> Tensor:
            return self.layer(x) + float(np.random.rand()) + random.random()  # noqa: NPY002

    subject = Subject.of(Noisy())
    assert torch.equal(subject.outputs(X), subject.outputs(X))


def test_every_call_sees_the_parameters_as_they_were_found() -> None:
    class Decaying(Net):
        def forward(self, x: Tensor) -> Tensor:
            answer = self.layer(x)
            self.layer.weight.data.mul_(0.5)
            return answer

    net = Decaying()
    subject = Subject.of(net)
    with subject.borrowed(), torch.no_grad():
        first, second = (subject.map_models(lambda model: model(X)) for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(first[0], nn.functional.linear(X, net.layer.weight, net.layer.bias))
