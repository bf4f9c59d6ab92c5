"""Figure 4's claims and declaration, on the networks of figure 3."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Claim, Equivalent, Evidence, Found, Greater, Results, Study
from skiplab.studies.balduzzi2017.activity import BINS, DECIDING, SCALES, by_layer, draws, histogram

if TYPE_CHECKING:
    import numpy as np

# By the words of verdicts, the titles of the figure's columns.
SHOWN = {
    "feedforward": "Feedforward without BN",
    "feedforward + BN": "Feedforward with BN",
    "resnet + BN": "Resnet, β = 1, with BN",
}


WITHOUT = (*DECIDING, "feedforward, no biases", "resnet without BN")
COIN = 2.0  # inputs in a run of coin flips, on average


def ends_and_middle(results: Results, words: str, layer: int) -> tuple[np.ndarray, np.ndarray]:
    """The shares of units in the two end tenths (networks, 2) and in those between (networks, 8)."""
    shares = histogram(results, words, "activation share", layer).to_numpy()
    return shares[:, [0, -1]], shares[:, 1:-1]


def bimodal(results: Results) -> Iterator[Evidence]:
    """The emptier of the two end bins less the fullest between them, without batch normalisation.

    At the last layer feedforward networks decide, with biases of deviation 1 and with section 1.1's.
    """
    layers = results.settings.layers
    for words, layer in product(WITHOUT, layers):
        ends, middle = ends_and_middle(results, words, layer)
        yield Evidence(
            f"{words}, layer {layer}",
            [(ends.min(axis=1) - middle.max(axis=1)).tolist()],
            headline=words in DECIDING and layer == layers[-1],
            detail=f"{ends.sum(axis=1).mean():.1%} of the units are in the two end bins",
        )


def more_bimodal(results: Results) -> Iterator[Evidence]:
    """By how much the share of units in the two end bins grows between layers of the same networks."""
    for words, (lower, upper) in product(WITHOUT, pairwise(results.settings.layers)):
        both = [ends_and_middle(results, words, layer)[0].sum(axis=1).tolist() for layer in (upper, lower)]
        where = f"{words}, layer {upper} − layer {lower}"
        yield Evidence(where, both, headline=words in DECIDING, paired=True)


def half_active(results: Results) -> Iterator[Evidence]:
    """The share of units in the two middle bins, with batch normalisation."""
    layers = results.settings.layers
    for words, layer in product(("feedforward + BN", "resnet + BN"), layers):
        shares = histogram(results, words, "activation share", layer).to_numpy()
        middle = shares[:, BINS // 2 - 1 : BINS // 2 + 1].sum(axis=1)
        yield Evidence(f"{words}, layer {layer}", [middle.tolist()], headline=layer == layers[-1])


def static(results: Results) -> Iterator[Evidence]:
    """Lengths of runs with batch normalisation, less those of coin flips."""
    points, layers = results.settings.points, results.settings.layers
    coin = points / (1 + (points - 1) / 2)  # a row of n coins has 1 + (n − 1)/2 runs on average
    for words, layer in product(("feedforward + BN", "resnet + BN"), layers):
        wide = by_layer(results, words, "run length")[layer]
        own = words == "feedforward + BN" and layer == layers[-1]
        detail = f"{wide.mean():.3g} inputs, coin flips {coin:.3g}"
        yield Evidence(f"{words}, layer {layer}", [(wide - coin).tolist()], headline=own, detail=detail)


def more_in_resnets(quantity: str) -> Found:
    """Evidence that resnets have more of a quantity than feedforward networks, both with batch normalisation."""

    def found(results: Results) -> Iterator[Evidence]:
        layers = results.settings.layers
        rest = by_layer(results, "feedforward + BN", quantity)
        for words in ("resnet + BN", "resnet + BN, β = .1"):
            wide = by_layer(results, words, quantity)
            for layer in layers[1:]:
                yield Evidence(
                    f"{words} − feedforward + BN, layer {layer}",
                    [wide[layer].tolist(), rest[layer].tolist()],
                    headline=words == "resnet + BN" and layer == layers[-1],
                    detail=f"{wide[layer].mean():.3g} against {rest[layer].mean():.3g}",
                )

    return found


def figure(results: Results) -> Any:
    """A raster and two histograms for three kinds of network at three layers."""
    from skiplab.studies.balduzzi2017.figure_4.plot import draw

    return draw(results, SHOWN)


STUDY = Study(
    id="balduzzi2017/figure-4",
    words=__file__,
    settings=SCALES,
    stages=(draws,),
    figure=figure,
    source="section 2",
    claims=(
        Claim(
            "more-bimodal-with-depth",
            "Without batch normalisation the distribution of a unit's activation becomes increasingly bimodal with "
            "depth: the two end tenths hold more units the deeper the layer.",
            more_bimodal,
            kind=Greater(worth=0.05),  # five of a layer's hundred units
            unit="share of units",
        ),
        Claim(
            "always-or-never-without-bn",
            "Without batch normalisation neurons of layer 50 are either always active or always inactive, or nearly: "
            "more of them are active for over nine tenths of the inputs, and more for under one tenth, than in any "
            "tenth between.",
            bimodal,
            kind=Greater(worth=0.1),  # as many units as each of ten equal bins holds
            unit="share of units",
        ),
        Claim(
            "half-active-with-bn",
            "Batch normalisation causes most neurons to be active for half the inputs: at layer 50 more than half of "
            "them are active for 40 to 60 % of the inputs.",
            half_active,
            kind=Greater(margin=-0.5),
            unit="share of units",
        ),
        Claim(
            "static-noise-in-feedforward-bn",
            "With batch normalisation the raster of a feedforward network resembles static television noise: at "
            "layer 50 runs of equal activation are as long as those of coin flips.",
            static,
            kind=Equivalent(margin=0.1 * COIN),
            unit="inputs beyond coin flips'",
        ),
        Claim(
            "contiguity-short-in-feedforward-bn",
            "Batch normalisation shatters the response of feedforward networks into small sections: at layer 50 runs "
            "of equal activation are shorter than in resnets with batch normalisation.",
            more_in_resnets("run length"),
            kind=Greater(worth=COIN),  # one more run of noise
            unit="inputs",
        ),
        Claim(
            "contiguity-broad-in-resnets",
            "Resnets maintain a broad distribution of contiguity: at layer 50 the logarithm (base 2) of a run's "
            "length is spread more widely than in feedforward networks with batch normalisation.",
            more_in_resnets("run spread"),
            kind=Greater(worth=0.1),  # about a tenth of the .83 octaves by which coin flips' lengths spread
            unit="octaves",
        ),
    ),
    cost={"smoke": 0.5, "quick": 40.0, "paper": 40.0},
)
