"""How many threads measurements take: one where that is as fast, and afterwards as many as before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

import skiplab as sl
from skiplab.checks import Refused
from skiplab.diagnosis import diagnose as diagnosing
from skiplab.measurements.noise_stability import weight_noise
from skiplab.subjects import Subject, threads
from skiplab.subjects.threads import fitting_threads, with_fitting_threads

X = torch.linspace(-1, 1, 48).reshape(8, 6)
BATCH = (X, torch.arange(8) % 3)
LOSS = nn.CrossEntropyLoss()
Costs = Callable[[float, float], list[int]]


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))


@pytest.fixture(autouse=True)
def _two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def costs(monkeypatch: pytest.MonkeyPatch) -> Costs:
    """What a pass takes with one thread and with two; the answer lists the threads of every pass."""

    def set_costs(one: float, two: float) -> list[int]:
        clock, passes = [0.0], list[int]()

        def passed(subject: Subject, batch: Any) -> None:
            passes.append(torch.get_num_threads())
            clock[0] += one if torch.get_num_threads() == 1 else two

        monkeypatch.setattr(threads, "_pass", passed)
        monkeypatch.setattr(threads, "time", SimpleNamespace(perf_counter=lambda: clock[0]))
        return passes

    return set_costs


@pytest.mark.parametrize(
    ("one", "two", "taken"),
    [(0.01, 0.08, 1), (0.0105, 0.01, 1), (0.02, 0.01, 2), (3.0, 1.6, 2), (1.6, 3.0, 1)],
)
def test_one_thread_is_taken_where_it_is_hardly_slower(
    costs: Costs, one: float, two: float, taken: int
) -> None:
    passes = costs(one, two)
    with fitting_threads(Subject.of(network()), BATCH):
        assert torch.get_num_threads() == taken
    assert torch.get_num_threads() == 2
    assert len(passes) == (7 if one < 1 else 3)  # a long pass is timed once with each


def test_who_has_one_thread_waits_for_no_pass(costs: Costs) -> None:
    passes = costs(1.0, 1.0)
    torch.set_num_threads(1)
    with fitting_threads(Subject.of(network()), BATCH):
        pass
    assert not passes


@pytest.mark.parametrize("problem", [ValueError, KeyboardInterrupt])
def test_threads_are_as_before_after_a_failure(costs: Costs, problem: type[BaseException]) -> None:
    costs(0.01, 0.02)
    with pytest.raises(problem), fitting_threads(Subject.of(network()), BATCH):
        raise problem
    assert torch.get_num_threads() == 2


def test_ctrl_c_while_threads_are_timed_leaves_them_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any) -> None:
        if torch.get_num_threads() == 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(threads, "_pass", stopped)
    with pytest.raises(KeyboardInterrupt), fitting_threads(Subject.of(network()), BATCH):
        pass
    assert torch.get_num_threads() == 2
    monkeypatch.undo()
    torch.set_num_threads(2)
    with fitting_threads(Subject.of(network()), BATCH):  # the next call decides for itself again
        assert threads._DECIDED.get()
    assert not threads._DECIDED.get()


def test_only_the_outermost_decides(costs: Costs) -> None:
    passes = costs(0.02, 0.01)
    with fitting_threads(Subject.of(network()), BATCH):
        before = len(passes)
        with fitting_threads(Subject.of(network()), BATCH):
            assert torch.get_num_threads() == 2
    assert len(passes) == before


def test_a_network_that_fails_is_left_to_the_measurement() -> None:
    with fitting_threads(Subject.of(network()), (X[:, :2], BATCH[1])):
        assert torch.get_num_threads() == 2


def test_measurements_decide_on_their_first_batch_and_read_a_loader_once(costs: Costs) -> None:
    passes, seen = costs(0.01, 0.02), list[int]()
    model = network()
    model[0].register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))
    measured = with_fitting_threads(weight_noise)
    whole = measured(model, BATCH, criterion=LOSS, draws=2)
    assert set(seen) == {1}
    assert passes
    passes.clear()
    seen.clear()
    read: list[int] = []

    def loader() -> Iterator[Any]:
        read.append(1)
        yield BATCH

    again = measured(model, loader(), criterion=LOSS, draws=2)
    assert read == [1]
    assert not passes
    assert set(seen) == {2}
    for name, estimate in whole.estimates.items():
        torch.testing.assert_close(estimate.value, again.estimates[name].value, equal_nan=True)
    with pytest.raises(Refused, match="draws is 0"):
        sl.weight_noise(model, BATCH, criterion=LOSS, draws=0)
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("fails", [False, True])
def test_a_diagnosis_takes_the_threads_that_fit_and_puts_them_back(costs: Costs, fails: bool) -> None:
    costs(0.01, 0.02)
    seen: list[int] = []
    model = network()
    model[0].register_forward_hook(lambda *_: seen.append(torch.get_num_threads()))

    def tell(text: str) -> None:
        if fails and "layer_signals" in text:
            raise KeyboardInterrupt

    def call() -> None:
        sl.diagnose(model, BATCH, criterion=LOSS, budget=20, examinations=["layer_signals"], tell=tell)

    if fails:
        with pytest.raises(KeyboardInterrupt):
            call()
    else:
        call()
    assert seen[-1] == 1
    assert torch.get_num_threads() == 2


def test_a_diagnosis_says_how_far_it_is_beyond_its_budget() -> None:
    told: list[str] = []
    diagnosing._say(told.append, "3/17 weight_noise", time.monotonic() + 30.2)
    diagnosing._say(told.append, "3/17 weight_noise", time.monotonic() - 12)
    assert told == ["3/17 weight_noise, at most 30 s more", "3/17 weight_noise, 12 s beyond the budget"]


def test_a_long_examination_is_told_of_at_every_pass() -> None:
    told: list[str] = []
    torch.set_num_threads(1)
    sl.diagnose(network(), BATCH, criterion=LOSS, budget=20, examinations=["weight_noise"], tell=told.append)
    assert sum("1/1 weight_noise, at most " in text for text in told) > 5
