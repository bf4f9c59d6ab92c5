"""The random search of BiasReg's targets, and the runs it leads to."""

from __future__ import annotations

import math
from collections import Counter

import pandas as pd
import pytest

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments.measured_networks import CurvatureSettings
from skiplab.experiments.networks import SQRT2, Networks, Training
from skiplab.studies.orhan2018 import bias_reg

SETTINGS = CurvatureSettings(
    data=("digits",), runs=5, gains=(0.3, SQRT2), narrow_runs=4, other_runs=2, epochs=7
)
GOOD, BAD, LUCKY = (-0.2, 0.1, 0.01), (0.7, 0.5, 0.03), (0.1, 0.2, 0.001)


def searched(
    triple: bias_reg.Triple, seed: int, accuracy: float, gain: float, model: str = "bias-reg"
) -> pd.DataFrame:
    """The table of one network of the search."""
    mean, sigma, strength = triple
    settings = Networks(
        "digits",
        model,
        (seed,),
        (gain,),
        Training(),
        sigmas=(sigma,),
        strengths=(strength,),
        means=(mean,),
    )
    rows = [
        {"member": 0, "epoch": epoch, "quantity": "accuracy", "layer": 0, "value": value}
        for epoch, value in ((1, 0.99), (2, accuracy))
    ]
    return earlier.table(settings, rows, [False]).assign(part="narrow")


@pytest.fixture
def found() -> pd.DataFrame:
    """GOOD is best at √2 and BAD at .3; LUCKY only on one seed, at another epoch, or on deciding seeds."""
    accuracies = {
        (GOOD, SQRT2): (0.7, 0.7),
        (BAD, SQRT2): (0.5, 0.6),
        (LUCKY, SQRT2): (0.9, 0.2),
        (GOOD, 0.3): (0.3, 0.3),
        (BAD, 0.3): (0.4, 0.4),
        (LUCKY, 0.3): (0.1, 0.1),
    }
    rows = [
        searched(triple, 500 + place, value, gain)
        for (triple, gain), both in accuracies.items()
        for place, value in enumerate(both)
    ]
    rows += [searched(LUCKY, 0, 0.95, gain) for gain in (0.3, SQRT2)]
    rows += [
        searched((0.0, 0.0, 0.0), 500, value, gain, "plain") for gain, value in ((0.3, 0.1), (SQRT2, 0.2))
    ]
    return pd.concat(rows)


def test_draws_fill_their_ranges_and_their_laws() -> None:
    means, sigmas, strengths = zip(*bias_reg.triples(0, 2000), strict=True)
    for values, (low, high) in (
        (means, bias_reg.MEANS),
        ([math.log(value) for value in sigmas], map(math.log, bias_reg.SIGMAS)),
        ([math.log(value) for value in strengths], map(math.log, bias_reg.STRENGTHS)),
    ):
        share = sorted((value - low) / (high - low) for value in values)
        # Kolmogorov's distance from the uniform law exceeds 1.63/√n once in a hundred seeds; ours is fixed.
        apart = max(abs(place / len(share) - value) for place, value in enumerate(share))
        assert apart < 1.63 / math.sqrt(len(share))
        assert min(share) >= -1e-3
        assert max(share) <= 1 + 1e-3


def test_draws_are_named_by_the_seed_and_a_longer_search_goes_on() -> None:
    assert bias_reg.triples(3, 10)[:4] == bias_reg.triples(3, 4)
    assert bias_reg.triples(3, 4) != bias_reg.triples(4, 4)
    assert len(set(bias_reg.triples(0, 24))) == 24


def test_draws_have_few_digits_so_that_keys_agree_between_machines() -> None:
    for triple in bias_reg.triples(0, 24):
        assert all(float(f"{value:.4g}") == value for value in triple)


@pytest.mark.parametrize("narrow", [False, True])
def test_the_search_is_one_trial_of_all_triples_gains_and_seeds(narrow: bool) -> None:
    name = bias_reg.narrow_search if narrow else bias_reg.search
    settings = name(SETTINGS, "digits", 3, 2).settings
    named = settings.networks if narrow else settings
    members = set(zip(named.means, named.sigmas, named.strengths, named.gains, named.seeds, strict=True))
    assert len(named.seeds) == len(members) == 3 * 2 * 2
    assert {member[:3] for member in members} == set(bias_reg.triples(0, 3))
    assert set(named.seeds) == {500, 501}
    assert named.training.epochs == SETTINGS.search_epochs
    assert named.training.width == (SETTINGS.narrow if narrow else SETTINGS.width)
    if narrow:
        assert (settings.part, settings.at) == ("narrow", ())


def test_the_best_triple_has_the_best_mean_over_search_seeds_at_its_gain(found: pd.DataFrame) -> None:
    assert bias_reg.best_triple(found, "digits", SQRT2) == GOOD
    assert bias_reg.best_triple(found, "digits", 0.3) == BAD


def test_deciding_runs_have_the_best_triple_of_each_gain(found: pd.DataFrame) -> None:
    plain, biased, normalised = (
        call.settings
        for call in bias_reg.decide(SETTINGS, found, "digits", ("plain", "bias-reg", "bias-reg-bn"))
    )
    assert (plain.sigmas, plain.strengths, plain.means) == ((), (), ())
    for named in (biased, normalised):
        assert named.seeds == plain.seeds == (0, 1, 2, 3, 4) * 2
        assert named.gains == plain.gains == (0.3,) * 5 + (SQRT2,) * 5
        rows = zip(named.means, named.sigmas, named.strengths, strict=True)
        assert list(rows) == [BAD] * 5 + [GOOD] * 5
    assert biased.norms_at == (0, 1, 2)


def narrow_sizes(found: pd.DataFrame) -> dict[float, int]:
    return Counter(bias_reg.narrow_runs(SETTINGS, found, "digits").settings.networks.gains)


def test_narrow_runs_are_most_at_the_best_gain_and_measured(found: pd.DataFrame) -> None:
    assert narrow_sizes(found) == {0.3: 2, SQRT2: 4}
    measured = bias_reg.narrow_runs(SETTINGS, found, "digits").settings
    named = measured.networks
    assert list(zip(named.means, named.sigmas, named.strengths, strict=True)) == [BAD] * 2 + [GOOD] * 4
    assert named.training == SETTINGS.narrow_training
    assert (measured.at, measured.exact) == (SETTINGS.at, SETTINGS.samples)


def test_plain_networks_best_gain_has_as_many_runs(found: pd.DataFrame) -> None:
    better = searched((0.0, 0.0, 0.0), 501, 0.9, 0.3, "plain")
    assert narrow_sizes(pd.concat([found, better])) == {0.3: 4, SQRT2: 4}


def test_wide_searches_do_not_choose_for_narrow_networks(found: pd.DataFrame) -> None:
    wide = pd.concat(searched(LUCKY, 500, 1.0, gain).assign(part="wide") for gain in SETTINGS.gains)
    both = networks.joined([found, wide])
    assert bias_reg.narrow_runs(SETTINGS, both, "digits") == bias_reg.narrow_runs(SETTINGS, found, "digits")
