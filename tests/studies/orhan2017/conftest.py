"""Tables as the training trial leaves them, with numbers of our choosing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.experiments.networks import Networks, Training, train
from skiplab.randomness import PLACES
from skiplab.reproduction.results import Part, Results

Make = Callable[..., pd.DataFrame]


@pytest.fixture
def trained() -> Make:
    """Make the table of one network from its accuracies by epoch and gradient norms by epoch and layer."""

    def make(
        model: str,
        seed: int,
        accuracies: Sequence[float],
        *,
        gain: float = 1.0,
        sigma: float = 0.0,
        strength: float = 0.0,
        skip: str = "identity",
        data: str = "digits",
        norms: Sequence[Sequence[float]] = (),
    ) -> pd.DataFrame:
        training = Training(epochs=len(accuracies))
        settings = Networks(
            data, model, (seed,), (gain,), training, skip=skip, sigmas=(sigma,), strengths=(strength,)
        )
        rows: list[dict[str, Any]] = [
            {"member": 0, "epoch": epoch + 1, "quantity": "accuracy", "layer": 0, "value": value}
            for epoch, value in enumerate(accuracies)
        ]
        rows += [
            {"member": 0, "epoch": epoch, "quantity": "gradient_norm", "layer": layer + 1, "value": value}
            for epoch, values in enumerate(norms)
            for layer, value in enumerate(values)
        ]
        return networks.table(settings, rows, [False])

    return make


@pytest.fixture
def by_stage() -> Callable[[Any, pd.DataFrame], Results]:
    """Results of networks whose seeds say whether they search or decide."""

    def results(settings: Any, frame: pd.DataFrame) -> Results:
        searching = frame["seed"].isin(PLACES["search"])
        stages = {"search": frame[searching], "decide": frame[~searching]}
        return Results(settings, [Part(train.name, stage, rows) for stage, rows in stages.items()])

    return results
