"""Growth of absorbed norms, its speed before and after the first drop of the rate, and their pattern over blocks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import NOT_RUN, Evidence, Results
from skiplab.studies.littwin2017.judged import judged
from skiplab.studies.littwin2017.resnet_settings import CONTROLS, FLOAT32, PLAIN
from skiplab.studies.littwin2017.resnets import RATE_KEPT

if TYPE_CHECKING:
    import numpy as np

WAVING = 0.8  # of blocks, 12 of 15, have the same sign


def grow(results: Results) -> Iterator[Evidence]:
    """ln of the mean absorbed norm at the first drop and at the end over that after one epoch."""
    from skiplab.studies.littwin2017.resnet_evidence import kept, means, same_seeds, sets

    settings = results.settings
    for data, name, doubt in sets(results):
        found = means(results, data, "absorbed")
        for epoch in (settings.drops[0], settings.epochs):
            yield judged(f"{name}, epoch {epoch} over 1", [found.log_ratio(epoch, 1)], doubt)
    first = settings.control_data
    for stage in CONTROLS:
        if kept(results, stage) and stage != FLOAT32:
            other = means(results, first, "absorbed", stage)
            last = other.epochs[-1]
            condition = f"{stage}, epoch {last} over 1"
            yield Evidence(condition, [other.log_ratio(last, 1)], headline=False)
    if kept(results, FLOAT32):
        single = means(results, first, "absorbed", FLOAT32)
        last = single.epochs[-1]
        one, two = same_seeds(single.log(), means(results, first, "absorbed").log())
        condition = f"float32 less bfloat16, epoch {last}"
        yield Evidence(condition, [one.at(last) - two.at(last)], headline=False)


def ordered(results: Results) -> Iterator[Evidence]:
    """Mean absorbed norms at the epochs whose lines the figure draws, epoch 0 left out."""
    from skiplab.studies.littwin2017.resnet_evidence import means, sets

    for data, name, doubt in sets(results):
        found = means(results, data, "absorbed")
        samples = [found.at(epoch) for epoch in results.settings.layers_at if epoch > 0]
        yield judged(name, samples, doubt, paired=True)


def faster(results: Results) -> Iterator[Evidence]:
    """The slope after the first drop less that before it, in units of the mean slope before it."""
    from skiplab.studies.littwin2017.resnet_evidence import means, sets

    settings = results.settings
    drop = settings.drops[0]
    windows = [settings.early, (drop // 4 + 1, drop), (min(drop * 3 // 4 + 1, drop - 1), drop)]
    for data, name, doubt in sets(results):
        found = means(results, data, "absorbed")
        for early in dict.fromkeys(windows):
            gain = _gain(found.slopes(settings.late), found.slopes(early))
            condition = f"{name}, epochs {early[0]}–{early[1]} before"
            yield judged(condition, [gain], doubt, headline=early == settings.early)
        logs = found.log()
        gain = _gain(logs.slopes(settings.late), logs.slopes(settings.early))
        yield judged(f"{name}, log norm", [gain], doubt, headline=False)


def _gain(late: np.ndarray, early: np.ndarray) -> np.ndarray:
    # Norms that fell before the drop had no growth to speed up: they must grow after it.
    return (late - early.clip(min=0)) / abs(early.mean())


def because_of_the_drop(results: Results) -> Iterator[Evidence]:
    """The slope after the drop less that of the same networks whose rate was kept, in units of the slope before."""
    from skiplab.studies.littwin2017.resnet_evidence import control_set, means, same_seeds

    settings = results.settings
    for data, name, doubt in control_set(results):
        kept_rate = means(results, data, "absorbed", branch=RATE_KEPT)
        main, control = same_seeds(means(results, data, "absorbed"), kept_rate)
        early = abs(main.slopes(settings.early).mean())
        yield judged(name, [(main.slopes(settings.late) - control.slopes(settings.late)) / early], doubt)


def waving(results: Results) -> Iterator[Evidence]:
    """The share of blocks whose second convolution differs from the first in the commoner direction, at the end."""
    import numpy as np

    from skiplab.studies.littwin2017.resnet_evidence import layers, sets

    for data, name, doubt in sets(results):
        found = layers(results, data, "absorbed")[1][:, -1, 1:]
        larger = (found[:, 1::2] > found[:, ::2]).mean(1)
        blocks = found.shape[1] // 2
        needed = math.ceil(WAVING * blocks)
        share = np.maximum(larger, 1 - larger)
        detail = f"second above first in {larger.mean():.0%} of {blocks} blocks"
        yield judged(name, [share - (needed - 1) / blocks], doubt, detail=detail)


def needs_skips(results: Results) -> Iterator[Evidence]:
    """Growth until the second drop of residual networks and of plain ones of the same seeds."""
    from skiplab.studies.littwin2017.resnet_evidence import control_set, kept, means, same_seeds

    end = results.settings.drops[1]
    for data, name, doubt in control_set(results):
        if not kept(results, PLAIN):
            yield Evidence.without(name, NOT_RUN, "plain networks were not trained", samples=2)
            continue
        pair = same_seeds(means(results, data, "absorbed"), means(results, data, "absorbed", PLAIN))
        yield judged(name, [each.log_ratio(end, 1) for each in pair], doubt, paired=True)
