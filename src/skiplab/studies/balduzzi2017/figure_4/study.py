"""Figure 4's claims and declaration, on the networks of figure 3."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skiplab.reproduction import Claim, Evidence, Found, Results, Study
from skiplab.studies.balduzzi2017.activity import BINS, SCALES, by_layer, draws, histogram

# By the words of verdicts, the titles of the figure's columns.
SHOWN = {
    "feedforward": "Feedforward without BN",
    "feedforward + BN": "Feedforward with BN",
    "resnet + BN": "Resnet, β = 1, with BN",
}


def bimodal(results: Results) -> Iterator[Evidence]:
    """The emptier of the two end bins less the fullest between them, without batch normalisation."""
    layers = results.settings.layers
    for words in ("feedforward", "feedforward, small biases", "feedforward, no biases", "resnet without BN"):
        for layer in layers:
            shares = histogram(results, words, "activation share", layer).to_numpy()
            ends, middle = shares[:, [0, -1]], shares[:, 1:-1]
            yield Evidence(
                f"{words}, layer {layer}",
                [(ends.min(axis=1) - middle.max(axis=1)).tolist()],
                headline=words == "feedforward" and layer == layers[-1],
                detail=f"{ends.sum(axis=1).mean():.0%} of the units are in the two end bins",
            )


def half_active(results: Results) -> Iterator[Evidence]:
    """The share of units in the two middle bins less a half, with batch normalisation."""
    layers = results.settings.layers
    for words in ("feedforward + BN", "resnet + BN"):
        for layer in layers:
            shares = histogram(results, words, "activation share", layer).to_numpy()
            middle = shares[:, BINS // 2 - 1 : BINS // 2 + 1].sum(axis=1)
            yield Evidence(
                f"{words}, layer {layer}",
                [(middle - 0.5).tolist()],
                headline=layer == layers[-1],
                detail=f"{middle.mean():.0%} of the units are in the two middle bins",
            )


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
    claims=(
        Claim(
            "bimodal-without-bn",
            "Without batch normalisation the distribution of a unit's activation is bimodal at layer 50: both end "
            "tenths hold more units than any tenth between.",
            bimodal,
            unit="share of units",
        ),
        Claim(
            "half-active-with-bn",
            "Batch normalisation causes most neurons to be active for half the inputs: at layer 50 more than half of "
            "them are active for 40 to 60 % of the inputs.",
            half_active,
            unit="share of units, less ½",
        ),
        Claim(
            "contiguity-short-in-feedforward-bn",
            "Batch normalisation shatters the response of feedforward networks into small sections: at layer 50 runs "
            "of equal activation are shorter than in resnets with batch normalisation.",
            more_in_resnets("run length"),
            unit="inputs",
        ),
        Claim(
            "contiguity-broad-in-resnets",
            "Resnets maintain a broad distribution of contiguity: at layer 50 the logarithm (base 2) of a run's "
            "length is spread more widely than in feedforward networks with batch normalisation.",
            more_in_resnets("run spread"),
            unit="octaves",
        ),
    ),
    cost={"smoke": 0.5, "quick": 40.0, "paper": 40.0},
)
