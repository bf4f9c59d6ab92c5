"""What figure 7 says of BiasInit where several σ of BiasSymmBreak are as good, and the search picks one by chance.

BiasInit takes the σ found for BiasSymmBreak, and its accuracy depends on it. So its claims are judged only where the
sign is the same at every tied σ.
"""

from __future__ import annotations

from dataclasses import replace

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import deciding_call
from skiplab.experiments.gains import ONE_POINT, WIDE, Model, accuracies, shared_seeds
from skiplab.experiments.networks import Member
from skiplab.experiments.open_claims import Open, difference, opened
from skiplab.reproduction import NOT_RUN, NOT_SAID, Call, Evidence, Found, Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2017.bias_grid import INIT, SYMM_BREAK, BiasGrid

TIED = "tied"  # the stage of BiasInit at the σ that the search did not take


def tied_sigmas(results: Results, data: str, gain: float) -> dict[float, float]:
    """BiasSymmBreak's accuracies at a gain by σ > 0, at the best λ each, if within a point of the best."""
    rows = networks.last_accuracy(results.rows(stage="search", data=data, model=SYMM_BREAK.name, gain=gain))
    by_cell = rows[rows["sigma"] > 0].groupby(["sigma", "strength"])["value"].mean()
    best = by_cell.groupby("sigma").max()
    tied = best[best > best.max() - ONE_POINT]
    return dict(zip(tied.index.astype(float).tolist(), tied.tolist(), strict=True))


def others_tied(results: Results, data: str) -> list[float]:
    """The σ that tie with the one taken at BiasInit's own gain."""
    gain = WIDE.own_gain(results, data, INIT)
    taken = BiasGrid().best(results, data, gain)["sigma"]
    return [sigma for sigma in tied_sigmas(results, data, gain) if sigma != taken]


def init_at_ties(results: Results) -> list[Call]:
    """Name BiasInit's deciding runs at its own gain and every σ that ties with the one taken, where asked for."""
    settings = results.settings
    seeds = networks.final_seeds(settings.seed, settings.runs)
    calls = []
    for data in settings.data if settings.init_at_ties else ():
        gain = WIDE.own_gain(results, data, INIT)
        strength = BiasGrid().best(results, data, gain)["strength"]
        sigmas = others_tied(results, data)
        members = [Member(seed, gain, sigma, strength) for sigma in sigmas for seed in seeds]
        if members:
            calls.append(replace(deciding_call(settings, data, INIT, members), stage=TIED))
    return calls


def open_if_sigmas_disagree(found: Found, better: Model, worse: Model, least: float) -> Found:
    """The same evidence, but no verdict where it is unknown or different at tied σ which of two models is ahead.

    One of the two is BiasInit; ahead is whose mean is larger by more than ``least``.
    """

    def reason(results: Results, row: Evidence) -> Open | None:
        data = row.condition.partition(",")[0]
        why = _disagreement(results, data, better, worse, least)
        return None if why is None else Open(f"{data}, BiasInit at each tied σ", *why)

    return opened(found, reason)


def _disagreement(
    results: Results, data: str, better: Model, worse: Model, least: float
) -> tuple[str, str] | None:
    """Why tied σ leave it open who is ahead, if they do: which kind of gap it is, and in words."""
    others = others_tied(results, data)
    gain = WIDE.own_gain(results, data, INIT)
    taken = BiasGrid().best(results, data, gain)["sigma"]
    more = results.rows(stage=TIED)
    ahead = {}
    for sigma in sorted([taken, *others]):
        init = WIDE.at(results, data, INIT) if sigma == taken else matching(more, data=data, sigma=sigma)
        pair = [init if model == INIT else WIDE.at(results, data, model) for model in (better, worse)]
        if all(map(len, pair)):
            ahead[sigma] = difference([accuracies(each) for each in shared_seeds(pair)])
    sigmas = ", ".join(f"{sigma:g}" for sigma in sorted([taken, *others]))
    if len(ahead) <= len(others):
        return NOT_RUN, f"BiasInit to be trained at each tied σ ({sigmas}; --set init_at_ties=true)"
    if len({effect > least for effect in ahead.values()}) > 1:
        told = ", ".join(f"{effect:+.3f} at σ = {sigma:g}" for sigma, effect in ahead.items())
        return NOT_SAID, f"σ within a point of the best decide: {told}"
    return None
