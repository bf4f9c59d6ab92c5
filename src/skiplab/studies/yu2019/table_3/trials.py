"""Weights of plain networks before training, drawn many times: what of Table 3 differs from draw to draw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

NEAR_ONE = 0.7


@dataclass(frozen=True)
class Draws:
    """Settings of one trial: plain networks of one depth, by their seeds."""

    data: str
    depth: int
    filters: tuple[int, ...]
    seeds: tuple[int, ...]


@trial("yu2019/drawn-weights", version=1)
def drawn_weights(settings: Draws, bench: Bench) -> pd.DataFrame:
    """One row per network: the mean of its kernels' entries, how many exceed .7, and how many do in magnitude."""
    import pandas as pd
    import torch

    from skiplab import data
    from skiplab.studies.yu2019.networks import Networks, Training, build

    outline = data.outline(settings.data, flat=False)
    like = Networks(
        data=settings.data,
        model="plain",
        depth=settings.depth,
        seeds=settings.seeds,
        training=Training(),
        filters=settings.filters,
    )
    rows = []
    for place, seed in enumerate(settings.seeds):
        net = build(like, outline, seed)
        entries = torch.cat([each.detach().flatten() for each in net.parameters() if each.ndim == 4]).double()
        high, low = (int((sign * entries > NEAR_ONE).sum()) for sign in (1, -1))
        rows.append({"seed": seed, "mean": entries.mean().item(), "above": high, "magnitude": high + low})
        bench.tell((place + 1) / len(settings.seeds), f"seed {seed}")
    return pd.DataFrame(rows)
