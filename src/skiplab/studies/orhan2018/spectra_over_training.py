"""Architectures compared through training: what figures 3 and S1 train, measure, claim and draw.

Accuracies come from networks of the paper's width. Fractions of eigenvalues come from exact spectra of networks as
deep but narrower, and beside them stands what can be known at the paper's width: guaranteed limits, and the answer
of the paper's mixture.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments import old_gains as searches
from skiplab.experiments import old_narrow_networks as comparisons
from skiplab.experiments.measured_networks import CurvatureSettings, Measured
from skiplab.experiments.networks import Member
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import pandas as pd

ONE_POINT = 0.01


@dataclass(frozen=True)
class Settings(CurvatureSettings):
    """The common settings, the epoch after which one network's whole spectrum is shown, and the narrow search.

    Narrow networks learn more slowly than wide ones, so at small scales their search must be longer to tell gains
    apart.
    """

    spectrum_at: int = 3
    narrow_search_runs: int = 5
    narrow_search_epochs: int = 30

    @property
    def for_narrow_search(self) -> Settings:
        """The settings with the length of the narrow search as that of the search."""
        return replace(self, search_runs=self.narrow_search_runs, search_epochs=self.narrow_search_epochs)

    @property
    def shown_epoch(self) -> int:
        """The epoch of the spectrum shown, within the epochs that there are."""
        return min(self.spectrum_at, self.epochs)


@dataclass(frozen=True)
class Comparison:
    """Models from the fewest to the most skips, which the paper expects to be less and less degenerate."""

    models: tuple[str, ...]

    def search(self, settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
        """First stage: each model's best gain, at the paper's width and for the narrow networks."""
        wide = [
            searches.gain_search(settings, model, data) for data, model in product(settings.data, self.models)
        ]
        return wide + comparisons.narrow_search_of(settings.for_narrow_search, self.models)

    def decide(self, settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
        """Second stage: accuracies at every gain, narrow networks with exact spectra, limits at full width."""
        found = networks.joined(tables[:1])
        calls: list[Call] = []
        for pair in product(settings.data, self.models):
            calls.append(comparisons.narrow_runs(settings, found, *pair))
            calls.append(accuracy_runs(settings, *pair))
            calls += comparisons.limits_at_width(settings, found, *pair)
            calls.append(one_spectrum(settings, found, *pair))
        return calls

    def table(self, _: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
        """All rows in one long table; part and seed tell them apart."""
        return networks.joined(tables)

    def figure(self, frame: pd.DataFrame, settings: Settings) -> Any:
        """Accuracy, fractions and spectra as in the paper, and (ours) what is known at its width."""
        from skiplab.studies.orhan2018.spectra_panels import panels

        return panels(frame, settings, self.models)

    def claims(self) -> tuple[Claim, ...]:
        """For neighbours in the order of the models: degenerate falls, negative rises, accuracy rises."""
        return tuple(
            claim
            for claims in (_degenerate, _negative, _accuracy)
            for fewer, more in pairwise(self.models)
            for claim in [claims(fewer, more)]
        )


# Naming trials -----------------------------------------------------------------------------------------


def accuracy_runs(settings: Settings, data: str, model: str) -> Call:
    """Name the runs at the paper's width; for plain and residual nets they are those of orhan2017/figure-7."""
    seeds = earlier.final_seeds(settings.seed, settings.runs)
    members = [Member(seed, gain) for gain, seed in product(settings.gains, seeds)]
    return earlier.call(settings.training, data, model, members, norms_at=settings.norms_at)


def one_spectrum(settings: Settings, found: pd.DataFrame, data: str, model: str) -> Call:
    """Name the trial that lists all eigenvalues of one narrow network.

    It is the first of the deciding ones, trained no longer than needed. A trial of its own keeps 10,000 rows out of
    the narrow runs, which other figures share.
    """
    best = searches.best_gain(networks.part(found, "narrow"), data, model)
    epoch = settings.shown_epoch
    training = replace(settings.narrow_training, epochs=max(epoch, 1))
    members = [Member(earlier.final_seeds(settings.seed, 1)[0], best)]
    named = earlier.together(training, data, model, members)
    measured = Measured(named, "spectrum", at=(epoch,), exact=settings.samples, eigenvalues_at=(epoch,))
    return networks.call(measured, "eigenvalues")


# Claims ------------------------------------------------------------------------------------------------


def _degenerate(fewer: str, more: str) -> Claim:
    return Claim(
        f"{fewer}-more-degenerate-than-{more}",
        f"{fewer.capitalize()} networks have more degenerate eigenvalues than {more} ones, at every measured epoch.",
        lambda frame, settings: comparisons.every_epoch(frame, settings, "degenerate", fewer, more),
        Greater(),
        "fraction",
    )


def _negative(fewer: str, more: str) -> Claim:
    return Claim(
        f"{more}-more-negative-than-{fewer}",
        f"{more.capitalize()} networks have more negative eigenvalues than {fewer} ones, at every measured epoch.",
        lambda frame, settings: comparisons.every_epoch(frame, settings, "negative", more, fewer),
        Greater(),
        "fraction",
    )


def _accuracy(fewer: str, more: str) -> Claim:
    """More skips train better; from residual to hyper-residual the paper only needs them not to be worse."""
    better = fewer == "plain"
    words = "a higher" if better else "at least (within a point) the"
    ending = f"than {fewer} ones" if better else f"of {fewer} ones"
    return Claim(
        f"{more}-beats-{fewer}" if better else f"{more}-not-worse-than-{fewer}",
        f"{more.capitalize()} networks reach {words} training accuracy {ending}, at the paper's width.",
        lambda frame, settings: accuracy_evidence(frame, settings, more, fewer),
        Greater(margin=0.0 if better else ONE_POINT),
        "accuracy",
    )


def accuracy_evidence(
    frame: pd.DataFrame, settings: CurvatureSettings, first: str, second: str
) -> Iterator[Evidence]:
    """Accuracies of two models at the paper's width, and as a further row those of the narrow networks."""
    wide = networks.part(frame, "wide")
    yield from searches.compare(wide, settings, (first, "identity"), (second, "identity"))
    shape = f"{settings.narrow_depth}×{settings.narrow}"
    for data in settings.data:
        conditions = comparisons.each_narrow_condition(frame, settings, data, (first, second))
        condition, _, rows = next(conditions)
        samples = [searches.accuracies(each) for each in rows]
        yield Evidence(f"{shape} networks, {condition}", samples, headline=False)
