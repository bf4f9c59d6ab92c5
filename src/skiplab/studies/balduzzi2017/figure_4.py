"""Figure 4: which rectifiers are active for which inputs, and for how many inputs in a row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.balduzzi2017.figure_3 import BINS, SCALES, Settings, by_layer, kinds, rows_of
from skiplab.studies.balduzzi2017.figure_3 import draws as networks_of_figure_3
from skiplab.studies.balduzzi2017.networks import REACH

if TYPE_CHECKING:
    import pandas as pd

SHOWN = {
    "feedforward": "Feedforward without BN",
    "feedforward + BN": "Feedforward with BN",
    "resnet + BN": "Resnet, β = 1, with BN",
}
HELD = ("activation share", "run share", "run length", "run spread", "run")


def draws(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Name the trials of figure 3."""
    return networks_of_figure_3(settings, tables)


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows on the layers seen in detail."""
    return tables[0][tables[0]["quantity"].isin(HELD)].reset_index(drop=True)


def histogram(frame: pd.DataFrame, settings: Settings, words: str, quantity: str, layer: int) -> pd.DataFrame:
    """The share in each bin (column) for each run (row)."""
    rows = rows_of(frame, kinds(settings)[words], quantity)
    return rows[rows["layer"] == layer].pivot(index="run", columns="x", values="value")


def _bimodal(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    last = settings.layers[-1]
    for words in ("feedforward", "feedforward, small biases", "feedforward, no biases", "resnet without BN"):
        for layer in settings.layers:
            shares = histogram(frame, settings, words, "activation share", layer).to_numpy()
            ends, middle = shares[:, [0, -1]], shares[:, 1:-1]
            detail = f"{ends.sum(axis=1).mean():.0%} of the units are in the two end bins"
            yield Evidence(
                f"{words}, layer {layer}",
                [(ends.min(axis=1) - middle.max(axis=1)).tolist()],
                headline=words == "feedforward" and layer == last,
                detail=detail,
            )


def _half(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    last = settings.layers[-1]
    for words in ("feedforward + BN", "resnet + BN"):
        for layer in settings.layers:
            shares = histogram(frame, settings, words, "activation share", layer).to_numpy()
            middle = shares[:, BINS // 2 - 1 : BINS // 2 + 1].sum(axis=1)
            yield Evidence(
                f"{words}, layer {layer}",
                [(middle - 0.5).tolist()],
                headline=layer == last,
                detail=f"{middle.mean():.0%} of the units are in the two middle bins",
            )


def _contrast(frame: pd.DataFrame, settings: Settings, quantity: str) -> Iterator[Evidence]:
    named, last = kinds(settings), settings.layers[-1]
    rest = by_layer(frame, named["feedforward + BN"], quantity)
    for words in ("resnet + BN", "resnet + BN, β = .1"):
        wide = by_layer(frame, named[words], quantity)
        for layer in settings.layers[1:]:
            detail = f"{wide[layer].mean():.3g} against {rest[layer].mean():.3g}"
            yield Evidence(
                f"{words} − feedforward + BN, layer {layer}",
                [wide[layer].tolist(), rest[layer].tolist()],
                headline=words == "resnet + BN" and layer == last,
                detail=detail,
            )


def raster(frame: pd.DataFrame, settings: Settings, words: str, layer: int) -> Any:
    """The first network's pattern (units, inputs), put together from the starts of its runs."""
    import numpy as np

    rows = rows_of(frame, kinds(settings)[words], "run")
    rows = rows[rows["layer"] == layer].sort_values(["unit", "x"])
    places = rows["unit"].to_numpy() * settings.points + rows["x"].to_numpy().astype(int)
    lengths = np.diff(places, append=settings.width * settings.points)
    return np.repeat(rows["value"].to_numpy(), lengths).reshape(settings.width, settings.points)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw a raster and two histograms for three kinds of network at three layers."""
    from skiplab.figures.activation_rasters import raster_panels

    def cell(words: str, layer: int) -> tuple[Any, Any, Any]:
        activation, runs = (
            histogram(frame, settings, words, quantity, layer).to_numpy()
            for quantity in ("activation share", "run share")
        )
        return raster(frame, settings, words, layer), activation, runs

    return raster_panels(
        {title: {layer: cell(words, layer) for layer in settings.layers} for words, title in SHOWN.items()},
        reach=REACH,
    )


STUDY = Study(
    id="balduzzi2017/figure-4",
    words=__file__,
    settings=SCALES,
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "bimodal-without-bn",
            "Without batch normalisation the distribution of a unit's activation is bimodal at layer 50: both end "
            "tenths hold more units than any tenth between.",
            _bimodal,
            Greater(),
            "share of units",
        ),
        Claim(
            "half-active-with-bn",
            "Batch normalisation causes most neurons to be active for half the inputs: at layer 50 more than half of "
            "them are active for 40 to 60 % of the inputs.",
            _half,
            Greater(),
            "share of units, less ½",
        ),
        Claim(
            "contiguity-short-in-feedforward-bn",
            "Batch normalisation shatters the response of feedforward networks into small sections: at layer 50 runs "
            "of equal activation are shorter than in resnets with batch normalisation.",
            lambda frame, settings: _contrast(frame, settings, "run length"),
            Greater(),
            "inputs",
        ),
        Claim(
            "contiguity-broad-in-resnets",
            "Resnets maintain a broad distribution of contiguity: at layer 50 the logarithm (base 2) of a run's "
            "length is spread more widely than in feedforward networks with batch normalisation.",
            lambda frame, settings: _contrast(frame, settings, "run spread"),
            Greater(),
            "octaves",
        ),
    ),
    cost={"smoke": 0.5, "quick": 40.0, "paper": 40.0},
)
