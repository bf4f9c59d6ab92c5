"""How far ‖γ‖ rises before the first drop of the rate, falls behind it, and when it turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.studies.littwin2017.judged import judged
from skiplab.studies.littwin2017.resnets import RATE_KEPT, SCALES_SPARED

if TYPE_CHECKING:
    import numpy as np

    from skiplab.studies.littwin2017.resnet_evidence import Curves


def rise(results: Results) -> Iterator[Evidence]:
    """ln of mean ‖γ‖ at the first drop over that before training."""
    from skiplab.studies.littwin2017.resnet_evidence import means, sets

    for data, name, doubt in sets(results):
        found = means(results, data, "scale")
        yield judged(name, [found.log_ratio(results.settings.drops[0], 0)], doubt)


def fall(results: Results) -> Iterator[Evidence]:
    """ln of mean ‖γ‖ at the first drop over that at the second."""
    from skiplab.studies.littwin2017.resnet_evidence import means, sets

    first, second = results.settings.drops
    for data, name, doubt in sets(results):
        yield judged(name, [means(results, data, "scale").log_ratio(first, second)], doubt)


def turn(results: Results) -> Iterator[Evidence]:
    """The epoch at which a broken line fits mean ‖γ‖ best, less the first one with the lower rate (81)."""
    from skiplab.studies.littwin2017.resnet_evidence import means, sets

    first, second = results.settings.drops
    for data, name, doubt in sets(results):
        found = knots(means(results, data, "scale"), first // 2 + 1, second)
        yield judged(name, [found - (first + 1)], doubt)


def knots(curves: Curves, start: int, end: int) -> np.ndarray:
    """Where a continuous line of two straight parts has its knot by least squares, one whole epoch per network."""
    import numpy as np

    chosen = [epoch for epoch in curves.epochs if start <= epoch <= end]
    values = np.stack([curves.at(epoch) for epoch in chosen])
    epochs = np.array(chosen, dtype=float)
    left = []
    for knot in epochs[1:-1]:
        design = np.stack([np.ones_like(epochs), epochs, np.maximum(epochs - knot, 0)], axis=1)
        fitted = design @ np.linalg.lstsq(design, values, rcond=None)[0]
        left.append(((values - fitted) ** 2).sum(0))
    return np.asarray(epochs[1:-1][np.argmin(left, axis=0)])


def because_of_the_drop(results: Results) -> Iterator[Evidence]:
    """How much of the turn of ln mean ‖γ‖ is absent where the rate is kept, less half of it.

    A turn is the slope after the drop less that before it, times the epochs that the later slope is taken over.
    """
    from skiplab.studies.littwin2017.resnet_evidence import control_set, means, same_seeds

    settings = results.settings
    span, second = settings.late[1] - settings.late[0], settings.drops[1]
    for data, name, doubt in control_set(results):
        lowered, kept = same_seeds(
            means(results, data, "scale"), means(results, data, "scale", branch=RATE_KEPT)
        )
        before = lowered.log().slopes(settings.early)
        turns = [(each.log().slopes(settings.late) - before) * span for each in (lowered, kept)]
        detail = (
            f"turns by {turns[0].mean():.3f} where the rate is lowered, by {turns[1].mean():.3f} elsewhere"
        )
        yield judged(name, [turns[1] - turns[0] / 2], doubt, detail=detail)
        ends = [each.log().at(second) for each in (kept, lowered)]
        yield judged(f"{name}, kept less lowered at the end", ends, doubt, paired=True, headline=False)


def without_decay(results: Results) -> Iterator[Evidence]:
    """The same fall where γ does not decay after the drop."""
    from skiplab.studies.littwin2017.resnet_evidence import control_set, means

    first, second = results.settings.drops
    for data, name, doubt in control_set(results):
        spared = means(results, data, "scale", branch=SCALES_SPARED)
        yield judged(name, [spared.log_ratio(first, second)], doubt)


def moves(results: Results) -> Iterator[Evidence]:
    """From the first drop to the second absorbed norms rise; that γ falls, raw weights and 1/σ unjudged."""
    from skiplab.studies.littwin2017.resnet_evidence import means, sets

    first, second = results.settings.drops
    for data, name, doubt in sets(results):
        for quantity, words, sign in (
            ("absorbed", "absorbed norms rise", 1),
            ("scale", "γ falls", -1),
            ("weight", "raw ‖w‖ rises", 1),
            ("inverse", "1/σ rises", 1),
        ):
            moved = sign * means(results, data, quantity).log_ratio(second, first)
            yield judged(f"{name}, {words}", [moved], doubt, headline=quantity == "absorbed")
