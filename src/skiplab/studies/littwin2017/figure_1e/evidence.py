"""How far the norm of the weights moves, and what moves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.studies.littwin2017.toy_evidence import learned, over_epochs, stages
from skiplab.studies.littwin2017.toy_settings import trend_epochs
from skiplab.studies.littwin2017.toys import train

if TYPE_CHECKING:
    import numpy as np

HEADLINE = "gain 1"


def norms(results: Results, stage: str, quantity: str = "weight_norm") -> tuple[np.ndarray, np.ndarray]:
    """Epochs, and ‖w‖ as an array (networks, epochs)."""
    epochs, found = over_epochs(results, stage, quantity)
    return epochs, found[..., 0]


def grows(results: Results) -> Iterator[Evidence]:
    """ln of ‖w‖ at the end over ‖w‖ at the start."""
    import numpy as np

    kinds = [(stage, stage, "weight_norm") for stage in stages(results)]
    kinds.insert(1, (f"{HEADLINE}, hidden layers alone", HEADLINE, "hidden_norm"))
    for condition, stage, quantity in kinds:
        found = norms(results, stage, quantity)[1]
        moved = np.log(found[:, -1] / found[:, 0]) if len(found) else []
        detail = f"{found[:, 0].mean():.1f} to {found[:, -1].mean():.1f}" if len(found) else ""
        yield Evidence(
            condition, [moved], headline=condition == HEADLINE, detail=f"{detail}; {learned(results, stage)}"
        )


def grows_steadily(results: Results) -> Iterator[Evidence]:
    """‖w‖ at the first epoch and after every eighth of the training."""
    for stage in stages(results):
        epochs, found = norms(results, stage)
        chosen = [list(epochs).index(epoch) for epoch in trend_epochs(int(epochs.max()))]
        samples = [found[:, place] for place in chosen]
        yield Evidence(stage, samples, paired=True, headline=stage == HEADLINE)


def shares(results: Results, stage: str, quantity: str, since: int = 1) -> np.ndarray:
    """What force or noise adds to ‖w‖² from an epoch on, in units of ‖w‖² before training; one number per network."""
    rows = results.rows(train, stage=stage, quantity=quantity, diverged=False)
    total = rows[rows["epoch"] >= since].groupby("seed")["value"].sum().to_numpy()
    start = norms(results, stage)[1][:, 0]
    return total / start**2


def force(results: Results) -> Iterator[Evidence]:
    """Σ −2μwᵀg over the training, from the first epoch or from the second on."""
    for stage in stages(results):
        noise = shares(results, stage, "noise").mean() if len(norms(results, stage)[1]) else float("nan")
        for since in (1, 2):
            condition = stage if since == 1 else f"{stage}, from epoch 2"
            detail = f"noise adds {noise:.2f}" if since == 1 else ""
            yield Evidence(
                condition,
                [shares(results, stage, "force", since)],
                headline=condition == HEADLINE,
                detail=detail,
            )
