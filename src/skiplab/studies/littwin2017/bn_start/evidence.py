"""Deviations by layer, second moments against the recursion, and effective depths with and without BN."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Results
from skiplab.studies.littwin2017.bn_start.trials import (
    DEVIATION,
    MOMENT,
    VARIANTS,
    streams,
)
from skiplab.studies.littwin2017.path_measures import DEPTH
from skiplab.studies.littwin2017.start_paths import INPUTS, start_paths

if TYPE_CHECKING:
    import numpy as np

USUAL = "networks"  # the stage of all networks but the larger ones
LAST = 10  # the toys' depth
DEEP = (20, 30, 40, 50, 60)  # layers beside the first ten
HEADLINE = "10 blocks, weights N(0, 1/n)"
GAINS = {0.3: "weights N(0, .09/n)", 2**0.5: "weights N(0, 2/n), He's"}


def judged_layers(results: Results) -> list[int]:
    """The layers from 2 on, of which eq 22 speaks: the toys' ten, and every tenth beyond."""
    return [layer for layer in (*range(2, LAST + 1), *DEEP) if layer <= results.settings.layers]


def deviations_rise(results: Results) -> Iterator[Evidence]:
    """σ_l of skipped layers, in every way of normalising."""
    settings, layers = results.settings, judged_layers(results)
    for variant in VARIANTS:
        for width in (settings.wide, settings.width):
            samples = [
                results.sample(
                    streams, stage=USUAL, quantity=DEVIATION, variant=variant, width=width, layer=layer
                )
                for layer in layers
            ]
            rise = (
                f"σ is {samples[0].mean():.2f} in layer 2 and {samples[-1].mean():.2f} in layer {layers[-1]}"
            )
            yield Evidence(f"{variant}, {width} units", samples, paired=True, detail=rise)


def sizes(settings: Any) -> dict[str, tuple[int, int]]:
    """Units and inputs of the larger networks in which the recursion is tried, by their words; the last decides."""
    chosen = [(settings.wide, settings.large), (settings.large, INPUTS), (settings.large, settings.large)]
    return {f"{width:,} units, {inputs:,} inputs": (width, inputs) for width, inputs in chosen}


def adds_one(results: Results) -> Iterator[Evidence]:
    """E[N_l²] − E[N_{l−1}²] against 1 in layers 2 to 10 of the largest networks.

    Unjudged: deeper layers; fewer units and inputs, which show the trend towards 1; other ways of normalising.
    """
    settings = results.settings
    *smaller, largest = sizes(settings)
    for layer in range(2, LAST + 1):
        yield _added(results, largest, layer, headline=True, stage=largest)
    further = [layer for layer in (LAST, 20, 30) if layer <= settings.deep]
    for layer in further[1:]:
        yield _added(results, largest, layer, stage=largest)
    for name in reversed(smaller):
        for layer in further:
            yield _added(results, name, layer, stage=name)
    for variant, width in product(VARIANTS, (settings.wide, settings.width)):
        for layer in (layer for layer in (2, LAST, 20, 30, 60) if layer <= settings.layers):
            name = f"{variant}, {width} units, {INPUTS} inputs"
            yield _added(results, name, layer, stage=USUAL, variant=variant, width=width)


def _added(results: Results, condition: str, layer: int, *, headline: bool = False, **where: Any) -> Evidence:
    before, after = (
        results.sample(streams, quantity=MOMENT, layer=each, **where) for each in (layer - 1, layer)
    )
    return Evidence(
        f"{condition}, layer {layer}",
        [after - before],
        paper_value=1.0,
        headline=headline,
        detail=f"E[N²] is {after.mean():.4g} after {layer} layers",
    )


def depths(
    results: Results, norm: str, *, blocks: int, gain: float = 1.0, width: int | None = None
) -> np.ndarray:
    """Effective depths of networks before training, one per seed."""
    width = results.settings.width if width is None else width
    return results.sample(
        start_paths,
        quantity=DEPTH,
        norm=norm,
        blocks=blocks,
        gain=gain,
        width=width,
        scale=1.0,
        every_scale=0.0,
    )


def shorter_with_bn(results: Results) -> Iterator[Evidence]:
    """D/p without BN less that with it, of the same weights."""
    settings = results.settings
    for condition, own in conditions(settings):
        norm = own.pop("norm", "after")
        without, with_bn = depths(results, "none", **own), depths(results, norm, **own)
        p = own["blocks"]
        detail = f"D is {without.mean():.2f} without BN and {with_bn.mean():.2f} with it"
        yield Evidence(
            condition,
            [without / p, with_bn / p],
            paired=True,
            headline=condition == HEADLINE,
            detail=detail,
            other_scale="gain" in own,
        )


def conditions(settings: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every condition in words, with what it has of a network's settings."""
    usual = LAST
    yield HEADLINE, {"blocks": usual}
    for blocks in settings.others:
        yield f"{blocks} blocks", {"blocks": blocks}
    for gain, words in GAINS.items():
        yield words, {"blocks": usual, "gain": gain}
    yield "BN before ReLU", {"blocks": usual, "norm": "before"}
    yield f"{settings.wide} units", {"blocks": usual, "width": settings.wide}


def harmonic(p: int) -> float:
    """H_p: of the layers' stream after layer l the newest layer is 1/l, if every layer adds as much."""
    return sum(1 / layer for layer in range(1, p + 1))


def half_gains(p: int, gain: float) -> float:
    """1 + (p − 1) g²/(2 + g²): a ReLU halves the second moment g² of W N, against the 1 of the skip."""
    return 1 + (p - 1) * gain**2 / (2 + gain**2)


def as_predicted(results: Results) -> Iterator[Evidence]:
    """Effective depths against both predictions, at the toys' depth; other widths, depths and gains unjudged."""
    for condition, own in conditions(results.settings):
        if "norm" in own:
            continue
        p, gain = own["blocks"], own.get("gain", 1.0)
        for words, norm, predicted in (
            ("BN", "after", harmonic(p)),
            ("no BN", "none", half_gains(p, gain)),
        ):
            yield Evidence(
                f"{words}, {condition}",
                [depths(results, norm, **own)],
                paper_value=predicted,
                headline=condition == HEADLINE,
                other_scale="gain" in own,
            )
