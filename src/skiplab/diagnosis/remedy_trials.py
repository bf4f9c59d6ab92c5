"""``sl.try_remedies``: train a network as it is and its treated copies side by side, on the same batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from skiplab.checks import Refused, device_of, listed, one_of, require, seeded, whole_numbers
from skiplab.diagnosis.courses import Course, course_of
from skiplab.diagnosis.data import onto
from skiplab.diagnosis.factory import seeded_globally
from skiplab.diagnosis.losses import Loss, loss_for, require_trainable
from skiplab.diagnosis.rates import ChosenRate, checked_rates, choose_rates
from skiplab.diagnosis.side_by_side import FAILS, Entrant, Run, alike, trained
from skiplab.diagnosis.trial_results import UNTREATED, Contender, RemedyTrials
from skiplab.randomness import derive, run_seeds
from skiplab.remedies.catalogue import REMEDIES, Remedy
from skiplab.remedies.treated import Treated
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.telling import Tell, silent

SEARCHING = 2  # seeds that choose a rate: as much work for three rates as six of the seeds that decide
LOOKED_AT = 128  # samples that a remedy may look at
MOST_STEPS = 10**8
# Parameters from which candidates are trained apart: their copies would fill the memory, and stacking gains little.
APART = 2_000_000


def try_remedies(
    model: nn.Module,
    batches: Any,
    *,
    steps: int = 100,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    remedies: Sequence[str] | None = None,
    seeds: int = 5,
    rate: float | None = None,
    rates: Sequence[float] | None = None,
    batch_size: int | None = None,
    device: str | torch.device | None = None,
    seed: int = 0,
    catalogue: Mapping[str, Remedy] | None = None,
    tell: Tell | None = None,
) -> RemedyTrials:
    """Train the network as it is and after each remedy for the same steps on the same batches; rank by final loss.

    ``batches`` are those of training: (inputs, targets), which is cut into batches, or several batches, taken in an
    order of each seed. A seed is that order and what the remedy draws. ``remedies`` are ids of ``REMEDIES`` (default:
    all); those that do not fit are listed with their reason. The network stays as it is.

    Training is by Adam in training mode. Each candidate has the same choice of rates: the ``rate`` given, the best
    of ``rates``, or a search about 0.001, by two seeds of their own, so that no remedy wins by a rate that suits it
    alone. The search more than doubles the work; the result says by how much. The final loss is the mean over the
    last tenth of the steps; differences to the untreated network are paired by seed. Ctrl-C ends it with what is
    finished.

    >>> some = ["gain", "skips-identity"]
    >>> found = try_remedies(model, (x, y), remedies=some, steps=20, seeds=3, rate=0.01)
    >>> print(repr(found).splitlines()[0])  # then a table; .plot() draws, .best names the best, .treated(id) has it
    Remedies tried on Sequential: 3 seeds, 20 steps of Adam on 16 samples in batches of 8
    >>> len(found.frame())  # a row per candidate and seed, the untreated network's among them
    9
    """
    require(isinstance(model, nn.Module), f"a {type(model).__name__} was given; pass a torch.nn.Module.")
    whole_numbers(steps=steps, seeds=seeds)
    require(steps <= MOST_STEPS, f"steps is {steps}, but must be at most {MOST_STEPS:,}.")
    seeded(seed)
    catalogue = REMEDIES if catalogue is None else catalogue
    require(
        isinstance(catalogue, Mapping) and len(catalogue) > 0,
        f"catalogue is a {type(catalogue).__name__}, but must map ids to remedies, as sl.remedies.REMEDIES does.",
    )
    listed("remedies", remedies)
    require(
        remedies is None or len(remedies) > 0,
        "remedies is empty, so there is nothing to try; name some, or leave it out to try all.",
    )
    chosen = [one_of("remedy", name, catalogue) for name in dict.fromkeys(remedies or catalogue)]
    choices = checked_rates(rate, rates)
    subject = Subject.of(model, criterion=criterion, loss_fn=loss_fn)
    place = subject.device if device is None else device_of(device)
    course = course_of(batches, batch_size, steps)
    looked_at = onto(course.first(LOOKED_AT), subject.device)
    loss = loss_for(model, looked_at, criterion, loss_fn)
    if not loss.known:
        raise Refused(f"{type(model).__name__} cannot be trained: {loss.words}.")
    require_trainable(model, looked_at, loss)
    work = _Work(
        model,
        looked_at,
        {name: catalogue[name] for name in chosen},
        course,
        loss,
        steps,
        place,
        tell or silent,
    )
    deciding = tuple(run_seeds(seed, seeds, role="decide"))
    searching = tuple(run_seeds(seed, SEARCHING, role="search"))
    copies, refused = work.first_copies(deciding[0])
    finished: list[Contender] = []
    notes: list[str] = []
    groups = _groups(model, copies)
    for group in groups:
        try:
            finished += work.tried(group, deciding, searching, choices)
        except KeyboardInterrupt as stop:
            if not finished or type(stop) is not KeyboardInterrupt:  # such as one that TERM raises
                raise
            tried = {each.id for each in finished}
            left = [name for each in groups for name in each if name not in tried]
            notes.append(f"stopped by Ctrl-C: {', '.join(left)} not finished, and so left out.")
            break
        except Refused as reason:
            if UNTREATED in group:
                raise
            refused |= dict.fromkeys(group, str(reason))
    ranked = sorted(finished, key=lambda each: each.rank)
    return RemedyTrials(
        type(model).__name__,
        tuple(ranked),
        refused,
        deciding,
        steps,
        course.words,
        loss.words,
        work.searched,
        tuple(notes),
        bool(notes),
        copies,
    )


class _Work:
    """Applies remedies and trains what comes of them."""

    def __init__(
        self,
        model: nn.Module,
        batch: Batch,
        remedies: Mapping[str, Remedy],
        course: Course,
        loss: Loss,
        steps: int,
        device: torch.device,
        tell: Tell,
    ) -> None:
        self.model, self.batch, self.remedies, self.course = model, batch, remedies, course
        self.loss, self.steps, self.device, self.tell = loss, steps, device, tell
        self.searched = 0
        self.changed: dict[str, str] = {UNTREATED: "as it is"}

    def first_copies(self, seed: int) -> tuple[dict[str, Treated], dict[str, str]]:
        """Every remedy's copy, and why the others refuse."""
        copies: dict[str, Treated] = {}
        refused: dict[str, str] = {}
        for name in self.remedies:
            self.tell(f"applying {name}")
            try:
                copies[name] = self._treated(name, seed)
                self.changed[name] = copies[name].changed
            except Refused as reason:
                refused[name] = str(reason)
            except FAILS as problem:  # a network that cannot be followed ends one remedy, not all
                said = str(problem).partition("\n")[0]
                refused[name] = f"it could not be applied ({type(problem).__name__}: {said})."
        return copies, refused

    def tried(
        self,
        names: Sequence[str],
        seeds: tuple[int, ...],
        searching: tuple[int, ...],
        choices: tuple[float, ...] | None,
    ) -> list[Contender]:
        """Choose the rates of some candidates, then train them."""
        how: dict[str, Any] = {"steps": self.steps, "device": self.device, "tell": self.tell}
        rates = choose_rates(names, self._entering, choices, self.course, self.loss, seeds=searching, **how)
        searched = sum(len(each.tried) for each in rates.values()) * len(searching)
        entrants = [self._entering(name, seed, rates[name].rate) for name in names for seed in seeds]
        runs = trained(entrants, self.course, self.loss, **how)
        self.searched += searched
        return [
            self._candidate(name, rates[name], [run for run in runs if run.name == name]) for name in names
        ]

    def _candidate(self, name: str, rate: ChosenRate, runs: Sequence[Run]) -> Contender:
        losses, accuracies = (
            torch.stack([getattr(run, what) for run in runs]).numpy() for what in ("loss", "accuracy")
        )
        return Contender(
            name, self.changed[name], rate, losses, accuracies, np.array([run.diverged for run in runs])
        )

    def _entering(self, name: str, seed: int, rate: float) -> Entrant:
        if name == UNTREATED:
            return Entrant(name, self.model, seed, rate)
        treated = self._treated(name, seed)
        return Entrant(name, treated.model, seed, rate, treated.penalty)

    def _treated(self, name: str, seed: int) -> Treated:
        # Ours draw from their seed; a remedy of somebody else may draw from the global stream.
        with seeded_globally(derive(seed, "remedy", name)):
            return self.remedies[name].apply(self.model, self.batch, seed=seed)


def _groups(model: nn.Module, copies: Mapping[str, Treated]) -> list[list[str]]:
    """Candidates that can be trained as one ensemble, the untreated network's first."""
    large = sum(each.numel() for each in model.parameters()) > APART
    groups, heads = [[UNTREATED]], [model]
    for name, treated in copies.items():
        fitting = (place for place, head in enumerate(heads) if not large and alike(head, treated.model))
        place = None if treated.penalty is not None else next(fitting, None)
        if place is None:
            groups.append([name])
            # Nothing joins a candidate that has a penalty.
            heads.append(treated.model if treated.penalty is None else nn.Identity())
        else:
            groups[place].append(name)
    return groups
