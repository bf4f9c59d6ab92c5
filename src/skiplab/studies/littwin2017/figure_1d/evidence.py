"""How far mean |λ| of the skipped layers and of the first layer moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.studies.littwin2017.toy_evidence import learned, over_epochs, stages
from skiplab.studies.littwin2017.toy_settings import trend_epochs

if TYPE_CHECKING:
    import numpy as np

HEADLINE = "headline"
UNIFORM = "λ starts U(0, 1)"  # the one condition in which scales start elsewhere than at 1


def growth(
    results: Results, stage: str = HEADLINE, quantity: str = "scale", until: int | None = None
) -> np.ndarray:
    """What every layer has gained at the end, or until an epoch, (networks, layers)."""
    epochs, found = over_epochs(results, stage, quantity)
    last = -1 if until is None else list(epochs).index(until)
    return found[:, last] - found[:, 0]


def beside(results: Results) -> Iterator[tuple[str, str, int]]:
    """The strip's conditions in words, their stages, and until which epoch: the strip's, and the last one trained."""
    short, last = results.settings.strip_epochs, results.settings.epochs
    for stage in stages(results)[1:]:
        yield f"{stage}, {short} epochs" if last > short else stage, stage, short
        if stage in results.settings.whole and last > short:
            yield f"{stage}, {last} epochs", stage, last


def grow(results: Results) -> Iterator[Evidence]:
    """Growth of the mean over skipped layers; by layer, as rms and under other choices unjudged."""
    own, settings = growth(results), results.settings
    yield Evidence("skipped layers", [own[:, 1:].mean(1)], detail=learned(results, HEADLINE))
    for layer in range(own.shape[1]):
        yield Evidence(f"layer {layer + 1}", [own[:, layer]], headline=False)
    squared = growth(results, quantity="scale_rms")[:, 1:].mean(1)
    yield Evidence("skipped layers, rms of λ", [squared], headline=False)
    short = growth(results, until=settings.strip_epochs)[:, 1:].mean(1)
    yield Evidence(f"skipped layers, {settings.strip_epochs} epochs", [short], headline=False)
    for words, stage, until in beside(results):
        other = growth(results, stage, until=until)[:, 1:].mean(1)
        yield _further(words, [other], stage, learned(results, stage, until))


def _further(
    words: str, samples: list[np.ndarray], stage: str, detail: str = "", paired: bool = False
) -> Evidence:
    """An unjudged row, which says so where scales start elsewhere."""
    other = stage == UNIFORM
    return Evidence(words, samples, headline=False, detail=detail, paired=paired, other_scale=other)


def first_grows(results: Results) -> Iterator[Evidence]:
    """Growth of the first layer; under other choices unjudged."""
    yield Evidence("layer 1", [growth(results)[:, 0]], detail=learned(results, HEADLINE))
    for words, stage, until in beside(results):
        yield _further(words, [growth(results, stage, until=until)[:, 0]], stage)


def grow_steadily(results: Results) -> Iterator[Evidence]:
    """Means over skipped layers at the first epoch and after every eighth of the training."""
    yield Evidence("skipped layers", _checkpoints(results, HEADLINE, results.settings.epochs), paired=True)
    for words, stage, until in beside(results):
        yield _further(words, _checkpoints(results, stage, until), stage, paired=True)


def _checkpoints(results: Results, stage: str, until: int) -> list[np.ndarray]:
    epochs, found = over_epochs(results, stage, "scale")
    chosen = [list(epochs).index(epoch) for epoch in trend_epochs(until)]
    return [found[:, place, 1:].mean(1) for place in chosen]


def first_differs(results: Results) -> Iterator[Evidence]:
    """Growth of the first layer less that of the others, in the direction that the other half of the networks has."""
    headline = ("first layer against the others", HEADLINE, results.settings.epochs)
    for condition, stage, until in (headline, *beside(results)):
        own = growth(results, stage, until=until)
        apart = own[:, 0] - own[:, 1:].mean(1)
        words = "more" if len(apart) and apart.mean() > 0 else "less"
        detail = f"the first layer grows {words} by {abs(apart.mean()):.2f}" if len(apart) else ""
        judged = in_the_others_direction(apart)
        if stage == HEADLINE:
            yield Evidence(condition, [judged], detail=detail)
        else:
            yield _further(condition, [judged], stage, detail)


def in_the_others_direction(differences: np.ndarray) -> np.ndarray:
    """Every second number, counted in the direction of the mean of those between, which have no other part.

    So a difference of unknown direction can be judged by a test that has one.
    """
    import numpy as np

    tellers = differences[1::2]
    return differences[::2] * (np.sign(tellers.mean()) if len(tellers) else 1.0)
