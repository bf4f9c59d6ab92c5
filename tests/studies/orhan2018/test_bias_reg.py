"""The random search of BiasReg's targets, and the runs it leads to."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import pytest

from skiplab.experiments import networks
from skiplab.experiments.gains import PLAIN, WIDE, Gains
from skiplab.experiments.narrow_networks import NARROW
from skiplab.experiments.networks import SQRT2, Networks, Training
from skiplab.reproduction.results import Part, Results
from skiplab.studies.orhan2018 import bias_reg, figure_5
from skiplab.studies.orhan2018.bias_reg import BIAS_REG, NARROW_TRIPLES, WIDE_TRIPLES, WITH_BN, BiasTriples
from skiplab.studies.orhan2018.figure_6 import study as figure_6

both_sizes = pytest.mark.parametrize("tuning", [WIDE_TRIPLES, NARROW_TRIPLES], ids=["wide", "narrow"])
SETTINGS = figure_5.Settings(
    data=("digits",),
    runs=5,
    gains=(0.3, SQRT2),
    narrow_runs=4,
    other_runs=2,
    epochs=7,
    triples=3,
    triple_runs=2,
    narrow_search_epochs=9,
)
GOOD, BAD, LUCKY = (-0.2, 0.1, 0.01), (0.7, 0.5, 0.03), (0.1, 0.2, 0.001)


def trained(
    triple: bias_reg.Triple, seed: int, accuracy: float, gain: float, stage: str, model: str = "bias-reg"
) -> Part:
    """One network of a stage."""
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
    return Part("", stage, networks.table(settings, rows, [False]))


def found(size: Gains) -> Results:
    """GOOD is best at √2 and BAD at .3; LUCKY only on one seed, at another epoch, or on deciding seeds."""
    accuracies = {
        (GOOD, SQRT2): (0.7, 0.7),
        (BAD, SQRT2): (0.5, 0.6),
        (LUCKY, SQRT2): (0.9, 0.2),
        (GOOD, 0.3): (0.3, 0.3),
        (BAD, 0.3): (0.4, 0.4),
        (LUCKY, 0.3): (0.1, 0.1),
    }
    parts = [
        trained(triple, 500 + place, value, gain, size.search)
        for (triple, gain), both in accuracies.items()
        for place, value in enumerate(both)
    ]
    parts += [trained(LUCKY, 0, 0.95, gain, size.decide) for gain in (0.3, SQRT2)]
    parts += [
        trained((0.0, 0.0, 0.0), 500, value, gain, size.search, "plain")
        for gain, value in ((0.3, 0.1), (SQRT2, 0.2))
    ]
    return Results(SETTINGS, parts)


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


@both_sizes
def test_the_search_is_one_trial_of_all_triples_gains_and_seeds(tuning: BiasTriples) -> None:
    call = tuning.search(SETTINGS, "digits")
    narrow = tuning is NARROW_TRIPLES
    named = call.settings.networks if narrow else call.settings
    members = set(zip(named.means, named.sigmas, named.strengths, named.gains, named.seeds, strict=True))
    assert len(named.seeds) == len(members) == 3 * 2 * 2
    assert {member[:3] for member in members} == set(bias_reg.triples(0, 3))
    assert set(named.seeds) == {500, 501}
    assert named.training.epochs == (9 if narrow else SETTINGS.search_epochs)
    assert named.training.width == (SETTINGS.narrow if narrow else SETTINGS.width)
    assert call.stage == tuning.size.search
    if narrow:
        assert (call.settings.part, call.settings.at) == ("narrow", ())


def as_fields(triple: bias_reg.Triple) -> dict[str, float]:
    return dict(zip(("mean", "sigma", "strength"), triple, strict=True))


@both_sizes
def test_the_best_triple_has_the_best_mean_over_search_seeds_at_its_gain(tuning: BiasTriples) -> None:
    results = found(tuning.size)
    assert tuning.best(results, "digits", SQRT2) == as_fields(GOOD)
    assert tuning.best(results, "digits", 0.3) == as_fields(BAD)


def test_deciding_runs_have_the_best_triple_of_each_gain() -> None:
    calls = bias_reg.experiment(PLAIN, BIAS_REG, WITH_BN).decide(found(WIDE))
    plain, biased, normalised = (call.settings for call in calls if call.stage == "decide")
    assert (plain.sigmas, plain.strengths, plain.means) == ((), (), ())
    for named in (biased, normalised):
        assert named.seeds == plain.seeds == (0, 1, 2, 3, 4) * 2
        assert named.gains == plain.gains == (0.3,) * 5 + (SQRT2,) * 5
        rows = zip(named.means, named.sigmas, named.strengths, strict=True)
        assert list(rows) == [BAD] * 5 + [GOOD] * 5
    assert biased.norms_at == (0, 1, 2)


def test_triples_are_tried_with_the_batch_norm_if_that_is_asked_for() -> None:
    """Then it has a search of its own, and no gain search after it."""
    for asked, searched, later in ((False, ["bias-reg"], 1), (True, ["bias-reg", "bias-reg-bn"], 0)):
        settings = dataclasses.replace(figure_6.STUDY.settings["smoke"], bn_searched=asked)
        calls = bias_reg.experiment(BIAS_REG, WITH_BN).search(Results(settings))
        assert [call.settings.model for call in calls] == searched
        tuned = bias_reg.TUNED[WITH_BN]
        assert tuned.borrows(settings) == bool(later)
        assert tuned.by.searched(settings).name == searched[-1]


def narrow_sizes(results: Results) -> dict[float, int]:
    return Counter(bias_reg.narrow_bias_runs(results, "digits").settings.networks.gains)


def test_narrow_runs_are_most_at_the_best_gain_and_measured() -> None:
    results = found(NARROW)
    assert narrow_sizes(results) == {0.3: 2, SQRT2: 4}
    measured = bias_reg.narrow_bias_runs(results, "digits").settings
    named = measured.networks
    assert list(zip(named.means, named.sigmas, named.strengths, strict=True)) == [BAD] * 2 + [GOOD] * 4
    assert named.training == SETTINGS.narrow_training
    assert (measured.at, measured.exact) == (SETTINGS.at, SETTINGS.samples)


def test_plain_networks_best_gain_has_as_many_runs() -> None:
    better = trained((0.0, 0.0, 0.0), 501, 0.9, 0.3, NARROW.search, "plain")
    assert narrow_sizes(found(NARROW).and_then([better])) == {0.3: 4, SQRT2: 4}


def test_wide_searches_do_not_choose_for_narrow_networks() -> None:
    results = found(NARROW)
    wide = [trained(LUCKY, 500, 1.0, gain, WIDE.search) for gain in SETTINGS.gains]
    runs = bias_reg.narrow_bias_runs(results, "digits")
    assert bias_reg.narrow_bias_runs(results.and_then(wide), "digits") == runs
