"""Figure 3's claims and declaration."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from skiplab.reproduction import Claim, Equivalent, Evidence, Greater, Results, Study, Value
from skiplab.studies.balduzzi2017.activity import DECIDING, SCALES, by_layer, draws, kinds

TENTH = 0.025  # of the paper's quarter: the smallest share of pairs that matters here


def half_active(results: Results) -> Iterator[Evidence]:
    """The share of inputs for which units are active, in all kinds of network."""
    for words in kinds(results.settings):
        own = words in (*DECIDING, "feedforward + BN")
        yield from _shares(results, words, "activation", 0.5, headline=own)


def quarter_coactive(results: Results) -> Iterator[Evidence]:
    """The share of pairs of inputs for which units are co-active, in networks with batch normalisation."""
    for words in ("feedforward + BN", "resnet + BN", "resnet + BN, β = .1"):
        yield from _shares(results, words, "coactivation", 0.25, headline=words == "feedforward + BN")


def _shares(
    results: Results, words: str, quantity: str, expected: float, headline: bool
) -> Iterator[Evidence]:
    """Each run's mean over layers, and the last layer as a further row."""
    wide, depth = by_layer(results, words, quantity), results.settings.depth
    yield Evidence(f"{words}, all layers", [wide.mean(axis=1).tolist()], expected, headline)
    yield Evidence(f"{words}, layer {depth}", [wide[depth].tolist()], expected, headline=False)


def climbs(results: Results) -> Iterator[Evidence]:
    """By how much co-activation grows between layers in networks without batch normalisation."""
    layers = results.settings.layers
    for words in ("feedforward", "resnet without BN", "feedforward, small biases", "feedforward, no biases"):
        wide = by_layer(results, words, "coactivation")
        for lower, upper in pairwise(layers):
            gap = wide[upper] - wide[lower]
            detail = f"from {wide[lower].mean():.3f} to {wide[upper].mean():.3f}"
            where = f"{words}, layer {upper} − layer {lower}"
            yield Evidence(where, [gap.tolist()], headline=words in DECIDING, detail=detail)


def resnets_alike(results: Results) -> Iterator[Evidence]:
    """Both shares of resnets beside those of feedforward networks, all with batch normalisation."""
    for words in ("resnet + BN", "resnet + BN, β = .1"):
        for quantity in ("activation", "coactivation"):
            both = [
                by_layer(results, each, quantity).mean(axis=1).tolist()
                for each in (words, "feedforward + BN")
            ]
            yield Evidence(f"{words}: {quantity}", both, headline=words == "resnet + BN")


def figure(results: Results) -> Any:
    """Activation and coactivation by layer, without and with BN, in feedforward networks and resnets."""
    from skiplab.studies.balduzzi2017.figure_3.plot import draw

    return draw(results)


STUDY = Study(
    id="balduzzi2017/figure-3",
    words=__file__,
    settings=SCALES,
    stages=(draws,),
    figure=figure,
    source="section 2",
    claims=(
        Claim(
            "half-active",
            "Neurons are active for half their inputs on average, with or without batch normalisation.",
            half_active,
            kind=Value(tolerance=0.1),
            unit="share of inputs",
        ),
        Claim(
            "quarter-coactive-with-bn",
            "With batch normalisation neurons are co-active for a quarter of distinct pairs of inputs.",
            quarter_coactive,
            kind=Value(tolerance=0.1),
            unit="share of pairs",
        ),
        Claim(
            "coactive-climbs-without-bn",
            "Without batch normalisation the co-active proportion climbs with depth.",
            climbs,
            kind=Greater(worth=TENTH),
            unit="share of pairs",
        ),
        Claim(
            "resnets-the-same",
            "Resnets with batch normalisation behave the same as feedforward networks with it.",
            resnets_alike,
            kind=Equivalent(margin=TENTH),
            unit="share",
        ),
    ),
    cost={"smoke": 0.5, "quick": 40.0, "paper": 40.0},
)
