"""Recording while a network trains: what is written, how often, and that training is the same with and without."""

from __future__ import annotations

import contextlib
import copy
import functools
import random
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import skiplab as sl
from skiplab.checks import Refused, SkiplabError
from skiplab.diagnosis import recording
from skiplab.diagnosis.recording import Recorder, SlowRecording, flat
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.measurements.hessian_trace import hessian_trace
from skiplab.measurements.layer_signals import layer_signals
from skiplab.randomness import torch_generator

CRITERION = nn.CrossEntropyLoss()


def network() -> nn.Module:
    """Convolution, batch normalisation and dropout, drawn from one stream."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return nn.Sequential(
            nn.Conv2d(1, 4, 3),
            nn.BatchNorm2d(4),
            nn.ReLU(),
            nn.Dropout(0.3),
            nn.Flatten(),
            nn.Linear(144, 10),
        )


def batches(count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    drawn = torch_generator(0, "batches")
    return [
        (torch.randn(8, 1, 8, 8, generator=drawn), torch.randint(10, (8,), generator=drawn))
        for _ in range(count)
    ]


class Clock:
    """Seconds that pass only where a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(recording, "clock", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


# Training is the same ---------------------------------------------------------------------------------------


def trained(recorder: Recorder | None, *, accumulate: int = 1) -> dict[str, Any]:
    """Train for some steps, with gradients of several batches added up; everything that training touches."""
    torch.manual_seed(11)
    np.random.seed(11)  # noqa: NPY002 - what a user's data pipeline may draw from
    random.seed(11)
    model = network()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    losses, grads = [], []
    for place, (x, y) in enumerate(batches(6)):
        loss = CRITERION(model(x + 0.1 * torch.randn_like(x)), y)
        loss.backward()
        losses.append(loss.item())
        if recorder is not None:
            recorder.step(model, (x, y))  # where gradients wait to be used
        if (place + 1) % accumulate == 0:
            grads.append([parameter.grad.clone() for parameter in model.parameters()])
            optimiser.step()
            optimiser.zero_grad()
    return {
        "losses": losses,
        "state": {name: tensor.clone() for name, tensor in model.state_dict().items()},
        "grads": grads,
        "modes": [part.training for part in model.modules()],
        "hooks": [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules()],
        "streams": (torch.get_rng_state(), np.random.random(), random.random()),  # noqa: NPY002
    }


def same(one: Any, other: Any) -> bool:
    if isinstance(one, torch.Tensor):
        return torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@pytest.mark.parametrize("accumulate", [1, 3])
def test_training_is_bit_for_bit_the_same(accumulate: int) -> None:
    names = ["gradient_norms", "layer_signals", "singularities", "activation_patterns", "weight_noise"]
    recorder = Recorder(every=1, instruments=names, criterion=CRITERION, share=1.0)
    plain, recorded = trained(None, accumulate=accumulate), trained(recorder, accumulate=accumulate)
    for part, value in plain.items():
        assert same(value, recorded[part]), part
    assert len(recorder.records) == 6
    assert {key.partition("/")[0] for key in recorder.records[0]} == {"step", *names}


# What is recorded -------------------------------------------------------------------------------------------


def test_records_are_what_the_instruments_say() -> None:
    model, (x, y) = network().eval(), batches(1)[0]
    model[1].num_batches_tracked += 1  # as after training: its running statistics count
    recorder = Recorder(every=1, instruments=["gradient_norms", layer_signals], criterion=CRITERION)
    found = recorder.step(model, (x, y), step=70)
    norms = gradient_norms(model, (x, y), criterion=CRITERION)
    gains = layer_signals(model, (x, y), criterion=CRITERION)
    expected = {"step": 70.0}
    for name, names, values in (
        ("gradient_norms", norms.layers, norms.mean[0]),
        ("layer_signals", gains.layers, gains.gain[0]),
    ):
        expected |= {f"{name}/{layer}": float(value) for layer, value in zip(names, values, strict=True)}
        ordered = values.sort().values
        middle = ordered[(len(ordered) - 1) // 2]
        for word, value in {"smallest": ordered[0], "middle": middle, "largest": ordered[-1]}.items():
            expected[f"{name}/{word}"] = float(value)
    assert found == pytest.approx(expected)


def test_without_a_choice_a_few_numbers_are_recorded() -> None:
    recorder = Recorder(every=1)
    found = recorder.step(network(), batches(1)[0])  # the loss is inferred
    words = [f"{name}/{word}" for name in recording.USUAL for word in ("smallest", "middle", "largest")]
    assert list(found) == ["step", *words]
    more = Recorder(every=1, per_layer=True).step(network(), batches(1)[0])
    assert set(found) < set(more)
    assert "layer_signals/5" in more


def test_a_result_without_layers_has_its_quantities() -> None:
    result = hessian_trace(network().eval(), batches(1)[0], criterion=CRITERION, products=4)
    found = flat("hessian_trace", result, True)
    assert list(found) == [f"hessian_trace/{quantity}" for quantity in result.estimates]


def test_a_batch_of_its_own_is_used_at_every_step() -> None:
    first, second = batches(2)
    recorder = Recorder(every=1, batch=first, criterion=CRITERION, share=1.0)
    model = network()
    one, other = recorder.step(model, second), recorder.step(model)
    del one["step"], other["step"]
    assert one == other == Recorder(criterion=CRITERION).record(model, first)
    assert one != Recorder(criterion=CRITERION).record(model, second)


def test_a_wrapped_network_is_the_network_inside() -> None:
    wrapped = nn.DataParallel(network())
    recorder = Recorder(every=1, instruments=["layer_signals"])
    assert "layer_signals/5" in recorder.step(wrapped, batches(1)[0])


def test_a_function_keeps_its_name_and_settings() -> None:
    few = functools.partial(sl.layer_signals, layers=["5"])
    found = Recorder(every=1, instruments=[few]).step(network(), batches(1)[0])
    assert [key for key in found if key.endswith("/5")] == ["layer_signals/5"]
    assert "layer_signals/0" not in found


@pytest.mark.parametrize("problem", [RuntimeError, TypeError, ZeroDivisionError])
def test_an_instrument_that_fails_ends_itself_and_not_the_training(problem: type[Exception]) -> None:
    def odd(target: Any, batch: Any) -> Any:
        raise problem("no such kernel\nmore")

    recorder = Recorder(every=1, instruments=[odd, "layer_signals"], share=1.0)
    with pytest.warns(SlowRecording, match="odd is not recorded any more: no such kernel$"):
        assert "layer_signals/5" in recorder.step(network(), batches(1)[0])
    assert "layer_signals/5" in recorder.step(network(), batches(1)[0])  # without a further warning


def test_one_bad_batch_does_not_end_a_record() -> None:
    calls: list[int] = []

    def odd(target: Any, batch: Any) -> Any:
        calls.append(len(calls))
        if calls[-1] in (1, 2, 4, 5, 6):  # counted from 0: two failures in a row, then three
            raise ValueError("NaN")
        return sl.layer_signals(target, batch)

    recorder = Recorder(every=1, instruments=[odd], share=1.0)
    told = []
    for _ in range(9):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            recorder.step(network(), batches(1)[0])
        told += [str(each.message) for each in caught]
    assert told == ["odd could not be recorded: NaN"] * 4 + ["odd is not recorded any more: NaN"]
    assert len(calls) == 7


def test_without_a_loss_what_needs_one_says_so() -> None:
    recorder = Recorder(every=1)
    with pytest.warns(SlowRecording, match="gradient_norms is not recorded any more: it needs a loss"):
        found = recorder.step(network(), batches(1)[0][0])
    assert "layer_signals/smallest" in found


# How often --------------------------------------------------------------------------------------------------


def loop(
    recorder: Recorder, clock: Clock, steps: int, step_seconds: float, record_seconds: float
) -> Iterator[int]:
    """Train for so many steps that take so long; the numbers of those that were recorded."""

    def measure(model: nn.Module, batch: Any = None) -> dict[str, float]:
        clock.now += record_seconds
        return {}

    recorder.record = measure  # type: ignore[method-assign]
    for step in range(1, steps + 1):
        clock.now += step_seconds
        if recorder.step(network_that_nobody_calls, ()):
            yield step


network_that_nobody_calls = nn.Identity()


def test_cheap_records_come_as_often_as_asked(clock: Clock) -> None:
    recorder = Recorder(every=10)
    assert list(loop(recorder, clock, 50, 1.0, 0.1)) == [10, 20, 30, 40, 50]
    assert recorder.spent == pytest.approx(0.5 / 49.5)  # the time before the first call is nobody's


def test_dear_records_wait_until_they_take_their_share_alone(clock: Clock) -> None:
    recorder = Recorder(every=10, share=0.05)
    with pytest.warns(
        SlowRecording, match="about every 38 steps, not every 10, to take 5% of the time"
    ) as said:
        found = list(loop(recorder, clock, 1000, 1.0, 2.0))
    assert len(said) == 1
    assert found[0] == 10
    # Of n records, 2n ≤ 0.05 (steps − 1 + 2n), so the n-th comes at step 38 n + 1.
    assert found[1:] == [38 * n + 1 for n in range(2, len(found) + 1)]
    assert recorder.spent <= 0.05


def test_the_share_is_kept_whatever_a_record_takes(clock: Clock) -> None:
    for seconds in (0.01, 0.6, 3.0, 20.0):
        recorder = Recorder(every=5, share=0.1)
        with pytest.warns(SlowRecording) if seconds > 0.4 else contextlib.nullcontext():
            for step in loop(recorder, clock, 600, 1.0, seconds):
                assert recorder.spent <= 0.1 or step == 5
        assert recorder.spent <= 0.1


def test_a_log_gets_the_dict_and_its_time_counts(clock: Clock) -> None:
    heard: list[dict[str, float]] = []

    def log(record: dict[str, float]) -> None:
        clock.now += 1.0
        heard.append(record)

    recorder = Recorder(log, every=4)
    assert list(loop(recorder, clock, 5, 1.0, 0.0)) == [4]
    assert heard == [{"step": 4.0}]
    assert recorder.records == []
    assert recorder.spent == pytest.approx(1 / 5)


# Refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Recorder(log=3), "log is 3, but must be a function of one dict"),
        (lambda: Recorder(every=0), "every is 0, but must be a whole number of at least 1"),
        (lambda: Recorder(share=0), "share is 0, but must be above 0 and at most 1, such as 0.05"),
        (lambda: Recorder(share=5), "share is 5, but must be above 0 and at most 1"),
        (lambda: Recorder(instruments="x"), "instruments is 'x', but must be a list such as"),
        (lambda: Recorder(instruments=[]), "instruments is .., but must be a list such as"),
        (
            lambda: Recorder(instruments=["gradient_norm"]),
            "instrument 'gradient_norm' is unknown.*gradient_norms",
        ),
        (lambda: Recorder(instruments=[3]), "instrument 3 is neither a name nor a function"),
        (lambda: Recorder(every=1).step(network()), "there is no batch; pass one to step"),
    ],
)
def test_what_cannot_be_recorded_is_refused(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        make()


@pytest.mark.parametrize(
    ("name", "package"), [("LightningCallback", "lightning"), ("TrainerCallback", "transformers")]
)
def test_without_a_package_its_callback_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, name: str, package: str
) -> None:
    monkeypatch.delitem(sys.modules, f"skiplab.diagnosis.callbacks.of_{package}", raising=False)
    for each in [each for each in sys.modules if each.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, each)
    monkeypatch.setattr("sys.meta_path", [Missing(package), *sys.meta_path])
    with pytest.raises(
        SkiplabError, match=rf"^{package} is not installed; run `pip install 'skiplab\[{package}\]'`.$"
    ):
        getattr(sl, name)(every=3)


class Missing:
    """An importer that lacks a package."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        if name.partition(".")[0] == self.package:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def test_a_recorder_changes_nothing_of_what_it_is_given() -> None:
    model, batch = network(), batches(1)[0]
    before, kept = copy.deepcopy(model.state_dict()), [part.clone() for part in batch]
    Recorder(every=1).step(model, batch)
    assert same(before, model.state_dict())
    assert all(map(torch.equal, kept, batch))
