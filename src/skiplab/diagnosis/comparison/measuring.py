"""Instruments on the networks of a comparison: each one's main quantity, network by network."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from skiplab.checks import Refused, listed, one_of
from skiplab.data import TensorSet
from skiplab.diagnosis.comparison.judging import mean_in_words, mean_interval
from skiplab.diagnosis.losses import Loss
from skiplab.diagnosis.side_by_side import FAILS, stacked
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import with_batch_statistics
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch

if TYPE_CHECKING:
    from skiplab.measurements.result import Result

# By name, loaded on use; the file of each instrument.
INSTRUMENTS = {
    "activation_patterns": "activation_patterns",
    "branch_ratios": "branch_ratios",
    "dominant_gradient_flow": "dominant_gradient_flow",
    "gradient_norms": "gradient_norms",
    "gradient_shattering": "gradient_shattering",
    "hessian_extremes": "hessian_extremes",
    "hessian_spectrum": "hessian_spectrum",
    "hessian_trace": "hessian_trace",
    "interlayer_cushions": "noise_stability",
    "layer_cushions": "noise_stability",
    "layer_signals": "layer_signals",
    "path_depth": "path_depth",
    "permutation_symmetry": "symmetry",
    "rescaling_symmetry": "symmetry",
    "saturation": "saturation",
    "singularities": "singularities",
    "weight_noise": "noise_stability",
}

AVERAGED = ("layer", "activation", "addition")  # kinds of places of which the mean says something


@dataclass(frozen=True, eq=False)
class ModelMeasure:
    """The main quantity of an instrument, (networks, places): NaN where a network diverged or it stays open."""

    model: str
    instrument: str
    quantity: str
    when: str
    places: tuple[str, ...]
    values: np.ndarray
    kind: str  # of the places: "layer", or "part", of which the first is the whole network
    by_decades: bool

    @property
    def in_short(self) -> np.ndarray:
        """One number per network: the mean over layers (geometric for what spans decades), or the first place.

        Layers in which the quantity stays open for some network are left out for all, so that all means are of one.
        """
        if self.kind not in AVERAGED:
            return np.asarray(self.values[:, 0])
        sound = ~np.isnan(self.values).all(1)
        known = ~np.isnan(self.values[sound]).any(0)
        if not known.any():
            return np.full(len(self.values), np.nan)
        values = self.values[:, known]
        if not self.by_decades:
            return np.asarray(values.mean(1))
        with np.errstate(divide="ignore"):  # the mean with a dead layer is 0
            return np.asarray(np.exp(np.log(values).mean(1)))

    @property
    def estimate(self) -> tuple[float, float, float]:
        """The mean over networks with its interval."""
        return mean_interval(self.in_short, geometric=self.by_decades)

    @property
    def place(self) -> str:
        """Which of the places ``in_short`` tells, in words."""
        return f"mean over {self.kind}s" if self.kind in AVERAGED else self.places[0]

    def __str__(self) -> str:
        return mean_in_words(self.in_short, geometric=self.by_decades)


@dataclass(frozen=True)
class NotMeasured:
    """What could not be measured, and why."""

    model: str
    instrument: str
    when: str
    why: str


def checked(names: Sequence[str]) -> tuple[str, ...]:
    """The names of instruments, each once; others are refused."""
    listed("measure", names)
    return tuple(dict.fromkeys(one_of("instrument", name, INSTRUMENTS) for name in names))


def measured(
    model: str,
    instrument: str,
    when: str,
    networks: Sequence[nn.Module],
    sound: Sequence[bool],
    batch: Batch,
    loss: Loss,
) -> ModelMeasure | NotMeasured:
    """Measure the networks that are sound, at once where they can be stacked; the others have NaN."""
    chosen = [network for network, is_sound in zip(networks, sound, strict=True) if is_sound]
    if not chosen:
        return NotMeasured(model, instrument, when, "every network diverged")
    try:
        home = importlib.import_module(f"skiplab.measurements.{INSTRUMENTS[instrument]}")
        results = _results(getattr(home, instrument), chosen, batch, loss)
        firsts = [next(iter(result.estimates.items())) for result in results]
        if len({result.places for result in results}) > 1:
            raise Refused("the networks have unlike places to measure.")
    except Exception as problem:  # hours of training must not be lost because an instrument fails
        said = str(problem).strip().partition("\n")[0]
        why = said if isinstance(problem, Refused) else f"it failed ({type(problem).__name__}: {said[:160]})"
        return NotMeasured(model, instrument, when, why)
    rows = torch.cat([torch.where(each.settled, each.value.double(), torch.nan) for _, each in firsts])
    values = np.full((len(networks), rows.shape[1]), np.nan)
    values[np.asarray(sound, dtype=bool)] = rows.cpu().numpy()
    first = results[0]
    return ModelMeasure(
        model, instrument, firsts[0][0], when, first.places, values, first.place, first.by_decades
    )


def _results(instrument: Any, networks: Sequence[nn.Module], batch: Batch, loss: Loss) -> list[Result]:
    device = next((each.device for each in networks[0].parameters()), torch.device("cpu"))
    samples = None
    if isinstance(batch, tuple) and len(batch) == 2 and loss.criterion is not None:
        samples = TensorSet(*batch, 0, "", "")
    ensemble = stacked(networks, samples, loss, device) if len(networks) > 1 else None
    if ensemble is not None:
        try:
            return [instrument(_subject(ensemble, batch, loss), batch)]
        except (Refused, *FAILS):
            pass  # what cannot be measured at once may be measured one by one
    return [instrument(_subject(network, batch, loss), batch) for network in networks]


def _subject(target: nn.Module | Ensemble, batch: Batch, loss: Loss) -> Subject:
    """The networks with the batch's statistics in their normalisation: before training they have no others."""
    subject = Subject.of(target, criterion=loss.criterion, loss_fn=loss.loss_fn)
    try:
        return with_batch_statistics(subject, batch)
    except Refused:
        return subject
