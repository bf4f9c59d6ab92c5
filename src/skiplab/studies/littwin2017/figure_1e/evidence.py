"""How far the norm of the weights moves, and what moves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.studies.littwin2017.toy_evidence import learned, over_epochs, stages
from skiplab.studies.littwin2017.toy_settings import trend_epochs
from skiplab.studies.littwin2017.toys import train

if TYPE_CHECKING:
    import numpy as np

HEADLINE, SMALL = "gain 1", "gain .3"


def further(results: Results) -> Iterator[tuple[str, str]]:
    """The conditions beside the deciding one: in words, with how long they are trained if that is shorter; stages."""
    short, last = results.settings.strip_epochs, results.settings.epochs
    for stage in stages(results)[1:]:
        yield f"{stage}, {short} epochs" if last > short else stage, stage


def norms(results: Results, stage: str, quantity: str = "weight_norm") -> tuple[np.ndarray, np.ndarray]:
    """Epochs, and ‖w‖ as an array (networks, epochs)."""
    epochs, found = over_epochs(results, stage, quantity)
    return epochs, found[..., 0]


def grows(results: Results) -> Iterator[Evidence]:
    """ln of ‖w‖ at the end over ‖w‖ at the start."""
    yield _growth(results, HEADLINE, headline=True)
    yield _growth(results, HEADLINE, words="hidden layers alone", quantity="hidden_norm")
    short = results.settings.strip_epochs
    yield _growth(results, HEADLINE, words=f"{short} epochs", until=short)
    for condition, stage in further(results):
        yield replace(_growth(results, stage), condition=condition)


def _growth(
    results: Results,
    stage: str,
    *,
    words: str = "",
    quantity: str = "weight_norm",
    until: int | None = None,
    headline: bool = False,
) -> Evidence:
    import numpy as np

    epochs, found = norms(results, stage, quantity)
    last = -1 if until is None else list(epochs).index(until)
    moved = np.log(found[:, last] / found[:, 0]) if len(found) else []
    size = f"{found[:, 0].mean():.1f} to {found[:, last].mean():.1f}; " if len(found) else ""
    return Evidence(
        f"{stage}, {words}" if words else stage,
        [moved],
        headline=headline,
        detail=size + learned(results, stage, until),
        other_scale=stage == SMALL,
    )


def grows_steadily(results: Results) -> Iterator[Evidence]:
    """‖w‖ at the first epoch and after every eighth of the training."""
    for condition, stage in ((HEADLINE, HEADLINE), *further(results)):
        epochs, found = norms(results, stage)
        chosen = [list(epochs).index(epoch) for epoch in trend_epochs(int(epochs.max()))]
        samples = [found[:, place] for place in chosen]
        other = stage == SMALL
        yield Evidence(condition, samples, paired=True, headline=stage == HEADLINE, other_scale=other)


def shares(
    results: Results, stage: str, quantity: str, since: int = 1, until: int | None = None
) -> np.ndarray:
    """What force or noise adds to ‖w‖² in some epochs, in units of ‖w‖² before training; one number per network."""
    rows = results.rows(train, stage=stage, quantity=quantity, diverged=False)
    chosen = rows["epoch"].between(since, rows["epoch"].max() if until is None else until)
    total = rows[chosen].groupby("seed")["value"].sum().to_numpy()
    start = norms(results, stage)[1][:, 0]
    return total / start**2


def force(results: Results) -> Iterator[Evidence]:
    """Σ −2μwᵀg over the training, from the first epoch or from the second on."""
    short = results.settings.strip_epochs
    spans: list[tuple[str, str, int, int | None]] = [
        (HEADLINE, HEADLINE, 1, None),
        (f"{HEADLINE}, from epoch 2", HEADLINE, 2, None),
        (f"{HEADLINE}, {short} epochs", HEADLINE, 1, short),
    ]
    for words, stage in further(results):
        spans += [(words, stage, 1, None), (f"{words}, from epoch 2", stage, 2, None)]
    for condition, stage, since, until in spans:
        kept = len(norms(results, stage)[1])
        noise = shares(results, stage, "noise", since, until).mean() if kept else float("nan")
        yield Evidence(
            condition,
            [shares(results, stage, "force", since, until)],
            headline=condition == HEADLINE,
            detail=f"noise adds {noise:.2f}",
            other_scale=stage == SMALL,
        )
