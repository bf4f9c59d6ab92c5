"""Table 1: training loss and test error of plain and residual networks of 20, 32 and 44 layers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from skiplab.reproduction import Claim, Evidence, Greater, Results, Study, scales
from skiplab.studies.yu2019.pairs import QUICK, SMOKE, PairSettings, both, train_pairs


def lower_loss(results: Results) -> Iterator[Evidence]:
    """ln L of plain and of residual networks at every depth."""
    import numpy as np

    for depth in results.settings.depths:
        pair = [np.log(each) for each in both(results, depth, "loss")]
        yield Evidence(f"{depth} layers", pair, paired=True)


def lower_error(results: Results) -> Iterator[Evidence]:
    """Test error of plain and of residual networks at every depth."""
    for depth in results.settings.depths:
        yield Evidence(f"{depth} layers", both(results, depth, "test_error"), paired=True)


def figure(results: Results) -> Any:
    """Loss and error against depth."""
    from skiplab.figures.colours import colour_of
    from skiplab.figures.curves import mean_interval
    from skiplab.figures.style import new_figure

    drawn, axes = new_figure(columns=2, width=6.4, height=2.8)
    for ax, quantity, words in zip(
        axes[0], ("loss", "test_error"), ("training loss", "test error"), strict=True
    ):
        for place, model in enumerate(("plain", "residual")):
            for depth in results.settings.depths:
                sample = both(results, depth, quantity)[place]
                mean, low, high = mean_interval(sample)
                ax.errorbar([depth], [mean], [[mean - low], [high - mean]], fmt="o", color=colour_of(model))
        ax.set(xlabel="depth (layers with weights)", ylabel=words)
    return drawn


STUDY = Study(
    id="yu2019/table-1",
    words=__file__,
    settings=scales(PairSettings, quick=QUICK, smoke=SMOKE),
    stages=(train_pairs,),
    figure=figure,
    claims=(
        Claim(
            "residual-lower-loss",
            "Residual networks reach a lower training loss than plain ones of the same depth.",
            lower_loss,
            Greater(worth=math.log(1.1)),
            unit="ln L",
        ),
        Claim(
            "residual-lower-error",
            "Residual networks reach a lower test error than plain ones of the same depth.",
            lower_error,
            Greater(worth=0.005),
            unit="test error",
        ),
    ),
    cost={"quick": 60, "paper": 2000},
    paper_device="one H200",
)
