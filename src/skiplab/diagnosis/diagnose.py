"""Point the instruments at a network: what is wrong with it, how badly, where, and what would help."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from torch import nn

from skiplab import linear_algebra as la
from skiplab.checks import Refused, listed, one_of, positive, require
from skiplab.diagnosis.chart import Chart, Examined, Unmeasured
from skiplab.diagnosis.examinations import EXAMINATIONS, Examination
from skiplab.diagnosis.patient import SAMPLES, Patient
from skiplab.diagnosis.report import Report
from skiplab.diagnosis.rules import findings_of
from skiplab.diagnosis.scan import LEAST_SAMPLES, OutOfTime, affordable, limited, scanned
from skiplab.interruption import unchanged_by_ctrl_c
from skiplab.subjects.batches import Batch
from skiplab.subjects.hooks import as_written
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.subjects.threads import fitting_threads
from skiplab.telling import Tell, silent
from skiplab.torch_private import uncompiled

BUDGET = 60.0  # seconds
SHARE = 0.4  # of the time left that one examination may take
STOPPED = "ended by Ctrl-C: findings rest on what was measured until then"
FEW = f"samples: {{}}, too few to tell how samples differ; pass {LEAST_SAMPLES} or more"
LEAST_MEMORY = 10**6  # bytes, below which somebody meant gigabytes
MOST_OF_ALL = 0.25  # of the whole budget that one examination may take


def diagnose(
    model: nn.Module,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    budget: float = BUDGET,
    memory: int | None = None,
    samples: int = SAMPLES,
    examinations: Sequence[str] | None = None,
    name: str = "",
    interruptible: bool = False,
    tell: Tell | None = None,
) -> Report:
    """Examine a network on samples of its data and report what is wrong with it, the worst first.

    The loss is ``criterion(output, target)`` or ``loss_fn(model, batch)``; without either it is inferred where that
    is safe, and said. ``budget`` are the seconds that all examinations together may take: they decide what is
    measured, on how many samples and how precisely. ``memory`` are the bytes to plan with, by default what is free.
    ``examinations`` names those to make (default: all). On a CPU one thread is used where a pass of the network takes
    no longer so, as on a busy machine, which moves numbers by rounding only. What was not measured is listed with
    the reason. If it is ``interruptible``, Ctrl-C ends the examinations and what was measured is reported. The model
    stays as it is.

    >>> report = diagnose(model, (x, y), budget=5, examinations=["layer_signals", "gradient_norms"])
    >>> [each.name for each in report.measured]
    ['layer_signals', 'gradient_norms']
    """
    budget = positive("budget", budget, BUDGET)
    if memory is not None:
        memory = int(positive("memory in bytes", memory, 8_000_000_000))
        require(
            memory >= LEAST_MEMORY,
            f"memory is {memory} bytes, too little for any network; pass 8e9 for 8 GB.",
        )
    require(isinstance(name, str), f"name is {name!r}, but must be text, such as 'my network'.")
    listed("examinations", examinations)
    require(isinstance(model, nn.Module), f"a {type(model).__name__} was given; pass a torch.nn.Module.")
    chosen = [one_of("examination", each, [e.name for e in EXAMINATIONS]) for each in examinations or ()]
    start = time.monotonic()
    tell = tell or silent
    tell("a first pass")
    model = uncompiled(model)  # what is compiled hides the calls of its layers
    planned = [each for each in EXAMINATIONS if not chosen or each.name in chosen]
    stopped = ""
    with contextlib.ExitStack() as threads:
        with as_written(model), la.allowing(memory):
            patient = Patient.of(
                model, batches, criterion=criterion, loss_fn=loss_fn, samples=samples, settled=False
            )
            threads.enter_context(fitting_threads(patient.subject, patient.batch))
            patient, fewer = affordable(patient, budget, la.budget_of(None, patient.subject.device))
            chart = Chart(patient, scanned(patient))
        try:
            with unchanged_by_ctrl_c((model,)), as_written(model), la.allowing(memory):
                for place, examination in enumerate(planned, 1):
                    left = budget - (time.monotonic() - start)
                    what = f"{place}/{len(planned)} {examination.name}"
                    _examine(chart, examination, left, budget, partial(_say, tell, what, start + budget))
        except KeyboardInterrupt as stop:
            if not interruptible or type(stop) is not KeyboardInterrupt:  # such as one that TERM raises
                raise
            stopped = STOPPED
            for each in planned:
                if each.name not in chart.measured and each.name not in chart.unmeasured:
                    chart.unmeasured[each.name] = Unmeasured(each.name, each.question, "Ctrl-C came first")
    # Weights that a parametrisation computes, such as spectral_norm's, change its buffers when read in training mode.
    with patient.subject.borrowed():
        findings = findings_of(chart)
    few = FEW.format(patient.samples) if patient.samples < LEAST_SAMPLES else ""
    notes = (*patient.assumed, *(note for note in (fewer, few, stopped) if note))
    seconds = time.monotonic() - start
    return Report(
        name or type(model).__name__,
        findings,
        tuple(chart.measured.values()),
        tuple(chart.unmeasured.values()),
        chart.scan,
        notes,
        seconds,
    )


def _in_seconds(time: float) -> str:
    """Seconds with two digits, or whole ones."""
    return f"{time:.2g} s" if time < 10 else f"{time:.0f} s"


def _say(tell: Tell, what: str, end: float) -> None:
    """Tell what is being examined, and how far the end of the budget is ahead or behind."""
    left = end - time.monotonic()
    rest = f"at most {max(left, 1):.0f} s more" if left > 0 else f"{-left:.0f} s beyond the budget"
    tell(f"{what}, {rest}")


def _examine(
    chart: Chart, examination: Examination, left: float, budget: float, say: Callable[[], None]
) -> None:
    """Make one examination if it can be made in its part of the time, else note why it was not."""
    say()
    name, question = examination.name, examination.question
    part = max(min(SHARE * left, MOST_OF_ALL * budget), 0.0)
    expected = examination.expected(chart.scan)
    why = examination.refusal(chart.patient, chart.scan)
    if not why and expected > part:
        why = f"it would take about {_in_seconds(expected)}, and {_in_seconds(part)} of the budget are left for it"
    if not why:
        start = time.monotonic()
        try:
            with limited(chart.patient.module, max(2 * part, 1.0), say):
                result = examination.measure(chart.patient, chart.scan, part)
            chart.measured[name] = Examined(name, question, result, time.monotonic() - start)
            return
        except Refused as reason:
            why = str(reason)
        except OutOfTime:
            why = f"it was ended after {time.monotonic() - start:.0f} s, its part of the budget"
        except Exception as problem:  # whatever fails here must not lose what other examinations found
            said = str(problem).strip().partition("\n")[0][:160]
            why = f"it failed ({type(problem).__name__}{f': {said}' if said else ''})"
    chart.unmeasured[name] = Unmeasured(name, question, why)
