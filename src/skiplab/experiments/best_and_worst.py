"""The best and the worst of many plain networks, and how near each group is to singular ones (figures 4, S2, S7).

One model is trained from many seeds; training accuracy, averaged over epochs, ranks the networks, and the best and
the worst ones are compared at the measured epochs. Small networks have exact spectra and decide; networks of the
paper's width, all of which are measured, show norms, overlaps and dependences, and their rank correlations.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.checks import at_least
from skiplab.data.reading import has_split
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

MODEL = "plain"
NARROW, WIDE_UNITS = "narrow", "wide-units"


@dataclass(frozen=True)
class Settings(CurvatureSettings):
    """How many networks are trained, and how many of the best and of the worst are compared.

    ``runs`` are small networks at their best gain, ``other_runs`` those at each of ``shown_gains``, ``wide_runs``
    networks of the paper's width at each of these gains; 0 leaves the latter two out.
    """

    runs: int = 100
    narrow_runs: int = 0  # 0: as many as runs
    other_runs: int = 100
    wide_runs: int = 100
    extremes: int = 10
    shown_gains: tuple[float, ...] = (1.0,)
    test: bool = False


# Naming trials -----------------------------------------------------------------------------------------


def search(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """First stage: the best gain of small networks and, where these are trained, of those of the paper's width."""
    calls = comparisons.narrow_search_of(settings, (MODEL,))
    if settings.wide_runs:
        calls += [searches.gain_search(settings, MODEL, data) for data in settings.data]
    return calls


def decide(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Second stage: one trial for every data set, size and gain."""
    found = networks.joined(tables[:1])
    return [call for data in settings.data for call in _decide_on(settings, found, data)]


def _decide_on(settings: Settings, found: pd.DataFrame, data: str) -> Iterator[Call]:
    best, *others = _gains(settings, found, data, NARROW)
    counts = {best: settings.narrow_runs or settings.runs} | dict.fromkeys(others, settings.other_runs)
    for gain, runs in counts.items():
        if runs:
            named = earlier.together(settings.narrow_training, data, MODEL, _members(settings, gain, runs))
            options: dict[str, Any] = {"exact": settings.samples, "units": settings.samples}
            options |= {"at": settings.at, "extremes": _extremes(settings, runs)}
            options |= {"test": settings.test and has_split(data, "test")}
            yield networks.call(Measured(named, NARROW, **options), f"gain {gain:.3g}")
    if settings.wide_runs:
        for gain in _gains(settings, found, data, WIDE_UNITS):
            members = _members(settings, gain, settings.wide_runs)
            named = earlier.together(settings.training, data, MODEL, members)
            measured = Measured(named, WIDE_UNITS, at=settings.at, units=settings.samples)
            yield networks.call(measured, f"full width, gain {gain:.3g}")


def _gains(settings: Settings, found: pd.DataFrame, data: str, role: str) -> list[float]:
    """The best gain on the search seeds, then the other gains to show."""
    searched = networks.part(found, NARROW if role == NARROW else "wide")
    return list(dict.fromkeys((searches.best_gain(searched, data, MODEL), *settings.shown_gains)))


def _members(settings: Settings, gain: float, runs: int) -> list[Member]:
    at_least("number of networks with a best and a worst one", runs, 2)
    return [Member(seed, gain) for seed in earlier.final_seeds(settings.seed, runs)]


def _extremes(settings: Settings, runs: int) -> int:
    """How many are best and how many worst: no network may be both."""
    return max(1, min(settings.extremes, runs // 2))


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Searches and measured networks in one long table; seeds and parts tell them apart."""
    return networks.joined(tables)


# Comparing ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """Networks of one data set, size and gain: the rows of all, and of the best and the worst."""

    data: str
    role: str
    gain: float
    is_best: bool
    everyone: pd.DataFrame
    best: pd.DataFrame
    worst: pd.DataFrame

    @property
    def words(self) -> str:
        """How a row of the scoreboard calls it."""
        size = "" if self.role == NARROW else "full width, "
        return f"{self.data}, {size}{'best ' if self.is_best else ''}gain {self.gain:.3g}"

    def has(self, quantity: str) -> bool:
        """Whether a quantity was measured here."""
        return bool((self.best["quantity"] == quantity).any())


def conditions(frame: pd.DataFrame, settings: Settings) -> Iterator[Condition]:
    """Yield every condition of which there are networks: small ones first, the best gain first."""
    for data in settings.data:
        for role in (NARROW, WIDE_UNITS) if settings.wide_runs else (NARROW,):
            rows = networks.part(frame, role)
            for place, gain in enumerate(_gains(settings, frame, data, role)):
                everyone = searches.deciding(rows, data, MODEL, gain)
                if len(everyone):
                    yield Condition(data, role, gain, place == 0, everyone, *groups(everyone, settings))


def groups(everyone: pd.DataFrame, settings: Settings) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows of the best and of the worst networks, by the rule by which the trial chose whom to measure."""
    accuracy = everyone[everyone["quantity"] == "accuracy"].sort_values(["epoch", "seed"])
    seeds = sorted(accuracy["seed"].unique())
    place = {seed: member for member, seed in enumerate(seeds)}
    rows = [
        {"member": place[seed], "quantity": "accuracy", "value": value}
        for seed, value in zip(accuracy["seed"], accuracy["value"].tolist(), strict=True)
    ]
    count = _extremes(settings, len(seeds))
    order = [seeds[member] for member in networks.chosen(rows, len(seeds), count)]
    best, worst = (everyone[everyone["seed"].isin(some)] for some in (order[:count], order[-count:]))
    return best, worst


def compared(
    frame: pd.DataFrame, settings: Settings, quantity: str, larger: str, smaller: str
) -> Iterator[Evidence]:
    """Evidence that one group ("best" or "worst") has more of a quantity than the other, at every measured epoch.

    Small networks at their best gain after some training are the headline. Before training (epoch 0) the
    groups differ by their random initial weights alone, of which the paper says nothing.
    """
    for condition in conditions(frame, settings):
        if not condition.has(quantity):
            continue
        for epoch in settings.at:
            samples = [
                comparisons.values(getattr(condition, group), quantity, epoch) for group in (larger, smaller)
            ]
            yield Evidence(
                f"epoch {epoch}, {condition.words}",
                samples,
                headline=condition.role == NARROW and condition.is_best and epoch > 0,
                detail=_detail(condition, quantity, epoch, sum(map(len, samples))),
            )


def _detail(condition: Condition, quantity: str, epoch: int, measured: int) -> str:
    if condition.role == WIDE_UNITS:
        rho, low, high = rank_correlation(condition.everyone, quantity, epoch)
        every = condition.everyone["seed"].nunique()
        return f"rank correlation with accuracy over all {every}: {rho:+.2f} [{low:+.2f}, {high:+.2f}] (ours)"
    lost = condition.best["seed"].nunique() + condition.worst["seed"].nunique() - measured
    were = "was" if lost == 1 else "were"
    return f"{lost} of these networks diverged and {were} not measured" if lost else ""


def rank_correlation(everyone: pd.DataFrame, quantity: str, epoch: int) -> tuple[float, float, float]:
    """Spearman's ρ between a quantity and accuracy averaged over epochs, with a 95 % interval.

    The interval is Fisher's for atanh ρ with variance (1 + ρ²/2)/(n − 3) (Bonett & Wright 2000); NaN where a
    quantity is the same in all networks or fewer than four were measured.
    """
    import numpy as np
    from scipy import stats

    accuracy = everyone[everyone["quantity"] == "accuracy"].groupby("seed")["value"].mean()
    same = (everyone["quantity"] == quantity) & (everyone["epoch"] == epoch) & (everyone["layer"] == 0)
    values = everyone[same].set_index("seed")["value"].dropna()
    ranks = np.array([stats.rankdata(part) for part in (values, accuracy.loc[values.index])])
    if len(values) < 4 or (np.ptp(ranks, axis=1) == 0).any():
        return math.nan, math.nan, math.nan
    rho = float(np.corrcoef(ranks)[0, 1])
    if abs(rho) > 1 - 1e-12:  # atanh has no end there
        return round(rho), round(rho), round(rho)
    reach = float(stats.norm.isf(0.025)) * math.sqrt((1 + rho**2 / 2) / (len(values) - 3))
    return rho, math.tanh(math.atanh(rho) - reach), math.tanh(math.atanh(rho) + reach)


def claim(name: str, text: str, quantity: str, larger: str, unit: str) -> Claim:
    """Declare that one group has more of a quantity than the other."""
    smaller = "best" if larger == "worst" else "worst"
    return Claim(
        name,
        text,
        lambda frame, settings: compared(frame, settings, quantity, larger, smaller),
        Greater(),
        unit,
    )


CLAIMS = (
    claim(
        "worst-more-degenerate",
        "The worst plain networks have a larger fraction of degenerate eigenvalues than the best.",
        "degenerate",
        "worst",
        "fraction",
    ),
    claim(
        "worst-smaller-norms",
        "The worst plain networks have smaller mean norms of incoming weights than the best.",
        "norm",
        "best",
        "norm",
    ),
    claim(
        "worst-larger-overlap",
        "The worst plain networks have a larger mean overlap of incoming weights than the best.",
        "overlap",
        "worst",
        "correlation",
    ),
    claim(
        "worst-more-dependence",
        "The hidden units of the worst plain networks are more linearly dependent than those of the best.",
        "dependence",
        "worst",
        "share of variance",
    ),
)
