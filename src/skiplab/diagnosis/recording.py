"""Instruments that look at a network while it trains, every so many steps and at no more than a share of the time.

Training is the same with and without: the network is borrowed as by every measurement, so parameters, gradients,
buffers, modes and random streams are afterwards what they were before.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import nn
from torch.nn.parallel import DataParallel, DistributedDataParallel

from skiplab.checks import one_of, require, whole_numbers
from skiplab.diagnosis.examinations import EXAMINATIONS, Examination
from skiplab.diagnosis.losses import Loss, loss_for
from skiplab.diagnosis.patient import SAMPLES, Patient, gathered, runs_on
from skiplab.diagnosis.scan import Scan, scanned
from skiplab.measurements.result import Result
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.torch_private import uncompiled

EVERY, SHARE = 100, 0.05
USUAL = ("gradient_norms", "layer_signals")  # cheap, and the first to show trouble
TRIES = 3  # of an instrument that has worked before, until it is given up
SECONDS = 5.0  # that an instrument which can be more or less precise is given
clock = time.perf_counter

Log: TypeAlias = Callable[[dict[str, float]], Any]
Instrument: TypeAlias = str | Callable[..., Result]


class SlowRecording(UserWarning):
    """Records come less often than asked for, or no longer."""


class Recorder:
    """Records instruments in a training loop: call ``step(model, batch)`` after every step.

    ``log`` gets a flat dict such as {"step": 100, "gradient_norms/smallest": 0.01, …} about ``every`` so many steps:
    of each instrument the smallest, the middle and the largest layer and, where ``instruments`` were chosen (names of
    examinations, or functions such as ``sl.gradient_norms``) or ``per_layer`` is true, its main number for every
    layer, "gradient_norms/blocks.3". Without a ``log`` the dicts are kept in ``records``.

    Recording takes at most ``share`` of the time, but for the first record: steps and records are timed, and a record
    that would take more waits for further steps, which is said once. The loss is as in ``diagnose``. What is recorded
    is measured on ``batch``, where one is given here, else on that of the step, on ``samples`` at most.

    >>> recorder = Recorder(every=2, criterion=torch.nn.CrossEntropyLoss(), share=1.0)
    >>> for step in range(4):
    ...     _ = recorder.step(model, (x, y))
    >>> [record["step"] for record in recorder.records]
    [2, 4]
    """

    def __init__(
        self,
        log: Log | None = None,
        *,
        every: int = EVERY,
        instruments: Sequence[Instrument] | None = None,
        share: float = SHARE,
        per_layer: bool | None = None,
        batch: Batch | None = None,
        criterion: Criterion | None = None,
        loss_fn: LossFunction | None = None,
        samples: int = SAMPLES,
    ) -> None:
        require(log is None or callable(log), f"log is {log!r}, but must be a function of one dict.")
        whole_numbers(every=every, samples=samples)
        right = isinstance(share, int | float) and 0 < share <= 1
        require(right, f"share is {share!r}, but must be above 0 and at most 1, such as {SHARE}.")
        self.records: list[dict[str, float]] = []
        self.every, self.share, self.samples = every, float(share), samples
        self._log = self.records.append if log is None else log
        self._instruments = _named(USUAL if instruments is None else instruments)
        self._tries = dict.fromkeys(self._instruments, 1)
        self._per_layer = instruments is not None if per_layer is None else per_layer
        self._batch, self._given = batch, (criterion, loss_fn)
        self._loss: Loss | None = None
        self._scan: Scan | None = None
        self._whole = False  # whether the network runs on whole batches alone
        self._steps, self._next = 0, every
        # Seconds: of steps, of records, of the last record without what only the first one needs, of that.
        self._trained = self._measured = self._last = self._prepared = 0.0
        self._since: float | None = None
        self._said = False

    @property
    def spent(self) -> float:
        """The share of the time so far that recording took."""
        total = self._trained + self._measured
        return self._measured / total if total else 0.0

    @property
    def is_due(self) -> bool:
        """Whether the step that is under way will be recorded, as far as is known before it ends."""
        return self._steps + 1 >= self._next

    @property
    def needs_batch(self) -> bool:
        """Whether records are made on the batch of the step."""
        return self._batch is None

    def step(
        self, model: nn.Module, batch: Batch | None = None, *, step: int | None = None
    ) -> dict[str, float]:
        """Count a step of training and record it if it is time; return the record, empty if there is none.

        ``step`` is its number where others count too.
        """
        now = clock()
        self._trained += 0.0 if self._since is None else now - self._since
        self._steps += 1
        found: dict[str, float] = {}
        if self._steps >= self._next and self._affordable():
            found = {"step": self._steps if step is None else int(step)} | self.record(model, batch)
            self._log(found)
            took = clock() - now
            self._measured += took
            self._last, self._prepared = took - self._prepared, 0.0
            self._next = self._steps + self.every
        self._since = clock()
        return found

    def record(self, model: nn.Module, batch: Batch | None = None) -> dict[str, float]:
        """Measure at once, whatever that takes; the numbers by name."""
        given = self._batch if batch is None or self._batch is not None else batch
        require(given is not None, "there is no batch; pass one to step(model, batch), or to the recorder.")
        found: dict[str, float] = {}
        with torch.enable_grad():
            for name, instrument in dict(self._instruments).items():
                try:
                    patient = self._patient(_bare(model), given)
                    found |= flat(name, self._measure(instrument, patient), self._per_layer)
                    self._tries[name] = TRIES
                except Exception as problem:  # training must not end because an instrument does
                    self._failed(name, (str(problem).strip() or type(problem).__name__).splitlines()[0])
        return found

    def _failed(self, name: str, reason: str) -> None:
        """Give an instrument up that never worked or failed thrice in a row; one batch may be at fault, by a NaN."""
        self._tries[name] -= 1
        is_last = self._tries[name] <= 0
        if is_last:
            del self._instruments[name]
        how = "is not recorded any more" if is_last else "could not be recorded"
        warnings.warn(f"{name} {how}: {reason}", SlowRecording, stacklevel=4)

    def _affordable(self) -> bool:
        """Whether one more record like the last stays within the share."""
        if not self._measured:
            return True
        would = self._measured + self._last
        fits = would <= self.share * (self._trained + would)
        if not fits and not self._said and self._steps == self._next:
            self._said = True
            per_step = self._trained / max(self._steps - 1, 1)
            about = math.ceil(self._last * (1 - self.share) / (self.share * max(per_step, 1e-9)))
            warnings.warn(
                f"a record takes {self._last:.2g} s and a step {per_step:.2g} s: records come about every "
                f"{max(about, self.every)} steps, not every {self.every}, to take {self.share:.0%} of the time.",
                SlowRecording,
                stacklevel=3,
            )
        return fits

    def _patient(self, model: nn.Module, batch: Batch) -> Patient:
        if self._loss is None:
            start = clock()
            subject = Subject.of(model, criterion=self._given[0], loss_fn=self._given[1])
            some = gathered([batch], self.samples, lambda batch: runs_on(subject, batch))
            self._whole = batch_size(some) > self.samples
            self._loss = loss_for(model, some, *self._given)
            self._prepared += clock() - start
        else:
            some = batch if self._whole else gathered([batch], self.samples)
        return Patient.on(model, some, self._loss)

    def _measure(self, instrument: Examination | Callable[..., Result], patient: Patient) -> Result:
        if not isinstance(instrument, Examination):
            return instrument(patient.subject, patient.batch)
        if self._scan is None:
            start = clock()
            self._scan = scanned(patient)
            self._prepared += clock() - start
        why = instrument.refusal(patient, self._scan)
        require(not why, why)
        return instrument.measure(patient, self._scan, SECONDS)


def flat(name: str, result: Result, per_layer: bool) -> dict[str, float]:
    """A result's main number: its smallest, middle and largest over layers, and every layer's.

    What is unknown is left out; a result without layers has all its quantities.
    """
    if result.places == ("",):
        every = {f"{name}/{quantity}": _mean(each.value) for quantity, each in result.estimates.items()}
        return {key: value for key, value in every.items() if not math.isnan(value)}
    values = next(iter(result.estimates.values())).value
    by_place = {place: _mean(values[:, index]) for index, place in enumerate(result.places)}
    known = {place: value for place, value in by_place.items() if not math.isnan(value)}
    if not known:
        return {}
    ordered = sorted(known.values())
    words = {"smallest": ordered[0], "middle": ordered[(len(ordered) - 1) // 2], "largest": ordered[-1]}
    found = {f"{name}/{word}": value for word, value in words.items()}
    return found | ({f"{name}/{place}": value for place, value in known.items()} if per_layer else {})


def _mean(values: torch.Tensor) -> float:
    return float(values.detach().double().mean())


def _named(instruments: Sequence[Instrument]) -> dict[str, Examination | Callable[..., Result]]:
    """Examinations by name, and functions by theirs."""
    require(
        not isinstance(instruments, str | Mapping) and len(instruments) > 0,
        f"instruments is {instruments!r}, but must be a list such as {list(USUAL)}.",
    )
    known = {each.name: each for each in EXAMINATIONS}
    found: dict[str, Examination | Callable[..., Result]] = {}
    for each in instruments:
        if isinstance(each, str):
            found[each] = known[one_of("instrument", each, known)]
        else:
            require(callable(each), f"instrument {each!r} is neither a name nor a function.")
            function = getattr(each, "func", each)  # of functools.partial
            found[getattr(function, "__name__", type(function).__name__)] = each
    return found


def _bare(model: nn.Module) -> nn.Module:
    """The network inside what trains it on several devices, or compiled."""
    inner = model.module if isinstance(model, DataParallel | DistributedDataParallel) else model
    return uncompiled(inner)
