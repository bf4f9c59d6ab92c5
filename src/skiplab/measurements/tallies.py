"""Sums over batches of what happens in each place of each network, one pass per network and batch.

Instruments that say where something is wrong share this: a network whose numbers are not finite is answered, not
refused, and the module that made the first of them is named (``subjects/not_finite.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from skiplab.checks import listed, no_such, one_of, require
from skiplab.measurements.batch_statistics import MODES, with_batch_statistics
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of, outside_inference_mode
from skiplab.subjects.hooks import as_written, visited
from skiplab.subjects.not_finite import first_not_finite
from skiplab.subjects.subject import first_tensor
from skiplab.subjects.untouched import PlainTensors

Sums = TypeVar("Sums")
SOUND = (1e-25, 1e30)  # mean squares that are neither lost nor infinite in float32


@dataclass
class Tallies(Generic[Sums]):
    """Per network the sums by place, in the order in which places were first met, and where it first failed."""

    networks: list[dict[str, Sums]]
    first_not_finite: list[str]
    samples: int = 0

    @property
    def places(self) -> tuple[str, ...]:
        """The places that some network has met."""
        return tuple(dict.fromkeys(name for sums in self.networks for name in sums))

    def table(self, value: Callable[[Sums], Tensor]) -> Tensor:
        """A number of each place, float64 (E, places); NaN where a network has not met it."""
        missing = torch.tensor(torch.nan, dtype=torch.float64)
        rows = [
            [value(sums[name]).double().cpu() if name in sums else missing for name in self.places]
            for sums in self.networks
        ]
        return torch.stack([torch.stack(row) for row in rows])


def tallied(
    subject: Subject,
    batches: Batch | Iterable[Batch],
    mode: str,
    observe: Callable[[Subject, Batch, dict[str, Sums]], bool],
) -> Tallies[Sums]:
    """Let ``observe`` run each network alone on each batch and add to its sums; it says whether all was finite.

    Networks of an ensemble are visited one by one, so that each has what it would have by itself, in training mode
    with the same dropout.
    """
    one_of("mode", mode, MODES)
    found: Tallies[Sums] = Tallies([{} for _ in range(subject.size)], [""] * subject.size)
    for given in batches_of(batches):
        found.samples += batch_size(given)
        with outside_inference_mode(given) as batch:
            moded = with_batch_statistics(subject, batch) if mode == "batch" else subject
            for member, sums in enumerate(found.networks):
                own = moded.alone(member)
                # torch.compile would trace the observer's hooks.
                with as_written(own.module), _answers_of(own.module) as sound:
                    sound.append(observe(own, batch, sums))
                if not all(sound) and not found.first_not_finite[member]:
                    found.first_not_finite[member] = first_not_finite(own, batch)
    return found


@contextmanager
def _answers_of(module: nn.Module) -> Iterator[list[bool]]:
    """Note of each answer that the network gives whether it is free of NaN and ∞; −∞ is a logit of no probability."""
    sound: list[bool] = []

    def look(_: nn.Module, __: Any, ___: Any, output: Any) -> None:
        answer = first_tensor(output)
        if answer is not None:
            with PlainTensors():  # a followed tensor would count this as a call
                values = answer.detach()
                sound.append(bool(((values.abs() if values.is_complex() else values) < torch.inf).all()))

    with visited(after=[(module, look)]):
        yield sound


def square_sum(values: Tensor) -> Tensor:
    """Σ|x|² of all numbers, as float64."""
    x = values.detach()
    x = x.abs() if x.is_complex() else x
    if x.dtype in (torch.float16, torch.bfloat16) or not x.is_floating_point():
        x = x.float()
    if x.dtype == torch.float32 and x.device.type == "cpu":
        # Summed in pairs, so exact to 1e-7; a norm in float64 takes 17 times as long (6 million numbers, one core).
        total = x.square().sum()
        if SOUND[0] < total.item() / max(x.numel(), 1) < SOUND[1]:
            return total.double()
    return torch.linalg.vector_norm(x, dtype=torch.float64).square()


def check_names(module: nn.Module, layers: Sequence[str] | None, more: Iterable[str] = ()) -> None:
    """Refuse names that are no module's, nor one of ``more``; a later call of a module is ``name#2``."""
    listed("layers", layers)
    require(layers is None or len(layers) > 0, "layers is empty; name a layer, or leave it out for all.")
    known = (*dict(module.named_modules()), *more)
    for name in layers or ():
        if name not in known and str(name).partition("#")[0] not in known:
            raise no_such("layer", name, known)


def lies_in(place: str, layers: Sequence[str] | None) -> bool:
    """Whether a place is one of the named layers or inside one; without names every place is."""
    return layers is None or any(name in ("", place) or place.startswith(f"{name}.") for name in layers)


def told(first: Sequence[str]) -> tuple[str, ...]:
    """What a result's text says of networks whose numbers are not finite."""
    where = [name for name in first if name]
    if not where:
        return ()
    several = f" in {len(where)} of {len(first)} networks" if len(first) > 1 else ""
    return (f"not finite{several}, first in {', '.join(dict.fromkeys(where))}",)
