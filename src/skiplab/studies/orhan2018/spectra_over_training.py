"""Architectures compared through training: what figures 3 and S1 train, measure, claim and draw.

Accuracies come from networks of the paper's width. Fractions of eigenvalues come from exact spectra of networks as
deep but narrower, and beside them stands what can be known at the paper's width: guaranteed limits, and the answer
of the paper's mixture.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import Any

from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import HYPER_RESIDUAL, ONE_POINT, PLAIN, Model, accuracies, compare
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.narrow_networks import (
    NARROW,
    NarrowSearchSettings,
    every_epoch,
    limits_at_width,
    narrow_runs,
    narrow_searches,
)
from skiplab.experiments.networks import Member
from skiplab.reproduction import Call, Claim, Evidence, Found, Greater, Results
from skiplab.reproduction.claim import OURS
from skiplab.studies.orhan2018.effects import SHARE


@dataclass(frozen=True)
class Settings(NarrowSearchSettings):
    """The common settings, and the epoch after which one network's whole spectrum is shown."""

    spectrum_at: int = 3

    @property
    def shown_epoch(self) -> int:
        """The epoch of the spectrum shown, within the epochs that there are."""
        return min(self.spectrum_at, self.epochs)


# Spectra are judged at a common gain, which need not be the best one of any model: both gains have networks,
# and in return untrained ones, which are not judged, have no spectra.
QUICK: dict[str, Any] = {
    **measured.QUICK,
    "other_runs": 5,
    "at": (3, 25),
    "narrow_search_runs": 3,
    "narrow_search_epochs": 25,
}
SMOKE: dict[str, Any] = {**measured.SMOKE, "narrow_search_runs": 1, "narrow_search_epochs": 1}


@dataclass(frozen=True)
class Comparison:
    """Models from the fewest to the most skips, which the paper expects to be less and less degenerate."""

    models: tuple[Model, ...]

    def search(self, results: Results) -> list[Call]:
        """First stage: each model's best gain, at the paper's width and for the narrow networks."""
        narrow = narrow_searches(results.settings, self.models, results.settings.data)
        return GainExperiment(*self.models).search(results) + narrow

    def decide(self, results: Results) -> list[Call]:
        """Second stage: accuracies at every gain, narrow networks with exact spectra, limits at full width."""
        calls = GainExperiment(*self.models).decide(results)
        for data, model in product(results.settings.data, self.models):
            calls.append(narrow_runs(results, data, model))
            calls += limits_at_width(results, data, model)
            calls.append(one_spectrum(results, data, model))
        return calls

    def figure(self, results: Results) -> Any:
        """Accuracy, fractions and spectra as in the paper, and (ours) what is known at its width."""
        from skiplab.studies.orhan2018.spectra_panels import panels

        return panels(results, self.models)

    def claims(self) -> tuple[Claim, ...]:
        """For neighbours in the order of the models: degenerate falls, negative rises, accuracy rises.

        The captions say that residual networks are less degenerate and perform better (figure S6, of the "main
        results"). Directions of negative fractions and of hyper-residual networks are ours.
        """
        return tuple(
            replace(claim(fewer, more), source=OURS if claim is _negative or more == HYPER_RESIDUAL else None)
            for claim in (_degenerate, _negative, _accuracy)
            for fewer, more in pairwise(self.models)
        )


def one_spectrum(results: Results, data: str, model: Model) -> Call:
    """Name the trial that lists all eigenvalues of one narrow network.

    It is the first of the deciding ones, trained no longer than needed. A trial of its own keeps 10,000 rows out of
    the narrow runs, which other figures share.
    """
    settings, epoch = results.settings, results.settings.shown_epoch
    training = replace(settings.narrow_training, epochs=max(epoch, 1))
    first = Member(networks.final_seeds(settings.seed, 1)[0], NARROW.best_gain(results, data, model))
    named = networks.together(training, data, model.name, [first])
    listed = Measured(named, "spectrum", at=(epoch,), exact=settings.samples, eigenvalues_at=(epoch,))
    return measured.call(listed, "eigenvalues")


# Claims ------------------------------------------------------------------------------------------------


def _degenerate(fewer: Model, more: Model) -> Claim:
    return Claim(
        f"{fewer.name}-more-degenerate-than-{more.name}",
        f"{fewer.name.capitalize()} networks have more degenerate eigenvalues than {more.name} ones, "
        "at every measured epoch of training.",
        every_epoch("degenerate", fewer, more),
        kind=Greater(worth=SHARE),
        unit="fraction",
    )


def _negative(fewer: Model, more: Model) -> Claim:
    return Claim(
        f"{more.name}-more-negative-than-{fewer.name}",
        f"{more.name.capitalize()} networks have more negative eigenvalues than {fewer.name} ones, "
        "at every measured epoch of training.",
        every_epoch("negative", more, fewer),
        kind=Greater(worth=SHARE),
        unit="fraction",
    )


def _accuracy(fewer: Model, more: Model) -> Claim:
    """More skips train better; from residual to hyper-residual the paper only needs them not to be worse."""
    better = fewer == PLAIN
    words = "a higher" if better else "at least (within a point) the"
    ending = f"than {fewer.name} ones" if better else f"of {fewer.name} ones"
    return Claim(
        f"{more.name}-beats-{fewer.name}" if better else f"{more.name}-not-worse-than-{fewer.name}",
        f"{more.name.capitalize()} networks reach {words} training accuracy {ending}, at the paper's width.",
        accuracy_at_both_widths(more, fewer),
        kind=Greater(worth=ONE_POINT) if better else Greater(margin=ONE_POINT),
        unit="accuracy",
    )


def accuracy_at_both_widths(first: Model, second: Model) -> Found:
    """Evidence that compares two models at the paper's width, and as a further row their narrow networks."""

    def found(results: Results) -> Iterator[Evidence]:
        yield from compare(first, second)(results)
        shape = f"{results.settings.narrow_depth}×{results.settings.narrow}"
        for data in results.settings.data:
            best = next(NARROW.conditions_on(results, data, [first, second]))
            samples = [accuracies(rows) for rows in best.rows]
            yield best.evidence(samples, f"{shape} networks, {best.words}", headline=False)

    return found
