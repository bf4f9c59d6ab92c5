"""What is known of a network before it is measured: its size, its blocks, and how long one pass takes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis.learned import has_learned
from skiplab.diagnosis.losses import NO_DERIVATIVE
from skiplab.diagnosis.patient import Patient
from skiplab.diagnosis.preparation import Preparation, prepared
from skiplab.subjects.blocks import Blocks
from skiplab.subjects.hooks import visited
from skiplab.subjects.residual_blocks import ResidualBlocks, residual_blocks
from skiplab.subjects.subject import first_tensor
from skiplab.subjects.weight_layers import inputs_of, weight_layers
from skiplab.torch_private import tree_leaves

LONG = 2.0  # seconds of a pass beside which initialising counts little
LEAST_SAMPLES = 4  # below, batch statistics and intervals mean little
WORTH_TIMING = (
    20  # two passes that take less than this part of the budget each may be timed to know what fits
)
PASSES_IN_BUDGET = 60  # samples are so many that this number of passes fits into the budget
COPIES = (
    4  # of all outputs of modules that derivatives of any instrument hold at once; measured on resnet50: 3.1
)


@dataclass(frozen=True)
class Scan:
    """Sizes and costs: ``seconds`` of a forward and backward pass on the batch, ``bytes`` of what modules return.

    ``learned`` says whether the network's loss is far below that of the best constant answer, ``preparation`` whether
    the data are centred.
    """

    parameters: int
    weight_layers: int
    blocks: Blocks
    residual: ResidualBlocks | None
    normalised: bool
    final_channels: int
    samples: int
    seconds: float
    bytes: int
    learned: bool = False
    preparation: Preparation = field(default_factory=Preparation)


def scanned(patient: Patient) -> Scan:
    """Run a network once, forward and backward, and look at its structure."""
    seconds, size = patient.passed or _passed(patient)
    module = patient.module
    return Scan(
        sum(parameter.numel() for parameter in module.parameters()),
        len(weight_layers(module)),
        patient.subject.structure,
        _residual(patient),
        any(is_normalisation(part) for part in module.modules()),
        max((inputs_of(layer) for layer in list(weight_layers(module).values())[-1:]), default=1),
        patient.samples,
        seconds,
        size,
        has_learned(patient),
        prepared(patient),
    )


def affordable(patient: Patient, seconds: float, memory: int) -> tuple[Patient, str]:
    """The patient with as many samples as time and memory allow, and a sentence where these are fewer than given."""
    if patient.samples <= LEAST_SAMPLES:
        return patient.settled(), ""
    try:
        few = patient.fewer(LEAST_SAMPLES)
        took, size = _passed(few)
    except Exception:  # such as of a network that takes batches of one size; others fail on all samples too
        return patient.settled(), f"samples: all {patient.samples}, since the network fails on fewer"
    each, rate = seconds / PASSES_IN_BUDGET, max(took / few.samples, 1e-9)
    by_time, by_memory = each / rate, memory / max(COPIES * size / few.samples, 1)
    if by_time < patient.samples <= by_memory and rate * patient.samples <= seconds / WORTH_TIMING:
        # A pass takes time however few its samples are, most of it in small networks: so one on all is timed too.
        whole, _ = _passed(patient.settled())
        rate = max((whole - took) / (patient.samples - few.samples), 1e-9)
        by_time = few.samples + (each - took) / rate
    most = max(LEAST_SAMPLES, int(min(by_time, by_memory)))
    if most >= patient.samples:
        return patient.settled(), ""
    scarce = "time" if by_time < by_memory else "memory"
    fewer = patient.fewer(most) if most > few.samples else replace(few, passed=(took, size))
    return fewer, f"samples: {most} of {patient.samples}, as many as the {scarce} allows"


def _passed(patient: Patient) -> tuple[float, int]:
    """Seconds of a forward and backward pass, and bytes of all that modules return in it.

    The shorter of two where they are short: the first pass may initialise what later ones have, in less than a
    second, and another program may take a core from either.
    """
    sizes: list[int] = []

    def note(_: nn.Module, __: Any, ___: Any, output: Any) -> None:
        tensors = [leaf for leaf in tree_leaves(output) if isinstance(leaf, Tensor)]
        sizes.append(sum(tensor.numel() * tensor.element_size() for tensor in tensors))

    took = math.inf
    for _ in range(2):
        sizes.clear()
        with visited(after=[(part, note) for part in patient.module.modules()]):
            start = time.perf_counter()
            _forward_and_backward(patient)
            took = min(took, time.perf_counter() - start)
        if took > LONG:
            break
    return took, sum(sizes)


def _forward_and_backward(patient: Patient) -> None:
    subject, batch = patient.subject, patient.batch

    def run(model: nn.Module) -> Tensor:
        if patient.loss.known:
            return subject.loss_of(model, batch)
        output = first_tensor(subject.call(model, batch))
        if output is None:
            raise Refused("the network returns no tensor; wrap it to return one, or pass loss_fn.")
        return output.sum()

    with subject.borrowed(), torch.enable_grad():
        leaves = {name: tensor.detach().requires_grad_() for name, tensor in subject.parameters.items()}
        value = subject.with_tensors(leaves).map_models(run)
        if value.is_complex():
            what = "loss" if patient.loss.known else "output"
            raise Refused(f"the {what} is {value.dtype}; return a real number, such as its size, .abs().")
        found = _derivatives(value.sum(), leaves)
    if patient.loss.known and leaves and all(each is None for each in found):
        raise Refused(NO_DERIVATIVE)


def _derivatives(value: Tensor, leaves: Mapping[str, Tensor]) -> Sequence[Tensor | None]:
    if not value.requires_grad:
        return [None] * len(leaves)
    try:
        return torch.autograd.grad(value, list(leaves.values()), allow_unused=True)
    except NotImplementedError as problem:
        said = str(problem).strip().partition(". ")[0][:160]
        raise Refused(
            f"torch cannot differentiate the network ({said}); for embeddings set sparse=False."
        ) from problem


def is_normalisation(part: nn.Module) -> bool:
    """Whether a module normalises, by its class: torch's kinds, and what others call RMSNorm and the like."""
    return "norm" in type(part).__name__.lower()


def _residual(patient: Patient) -> ResidualBlocks | None:
    try:
        return residual_blocks(patient.subject, patient.batch)
    except Refused:
        return None


class OutOfTime(Exception):
    """An examination took longer than it was given."""


@contextmanager
def limited(module: nn.Module, seconds: float, say: Callable[[], None] = lambda: None) -> Iterator[None]:
    """End what calls the network, or parts of it, when its time is up, at the next call; ``say`` hears of each."""
    end = time.monotonic() + seconds

    def check(_: nn.Module, __: Any, ___: Any) -> None:
        say()
        if time.monotonic() > end:
            raise OutOfTime

    # A loss function may call parts alone, as Lightning's training_step does.
    with visited(before=[(part, check) for part in (module, *module.children())]):
        yield
