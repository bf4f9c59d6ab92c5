"""The connections of the four toy networks, found at random activities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

ARCHITECTURES = ("plain", "residual", "hyper-residual", "path-residual")
WIDTH = 2


@dataclass(frozen=True)
class Probe:
    """Settings of the trial: the seeds of the activities and the number of hidden layers."""

    seeds: tuple[int, ...]
    depth: int = 5


@trial("orhan2017/toy-connections", version=1)
def probe(settings: Probe, bench: Bench) -> pd.DataFrame:
    """Find every connection of the four networks, one row each; ``draw`` is the seed of the activities."""
    import dataclasses

    import pandas as pd
    import torch

    from skiplab.architectures.toy import TOY_NETS
    from skiplab.randomness import torch_generator
    from skiplab.subjects.direct_connections import connections

    rows = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"activities {seed}")
        size = (settings.depth + 1, WIDTH)
        drawn = torch.rand(size, generator=torch_generator(seed, "figure 3"), dtype=torch.float64)
        for name in ARCHITECTURES:
            found = connections(TOY_NETS[name](settings.depth), list(0.5 + drawn))
            rows += [{"draw": seed, "architecture": name, **dataclasses.asdict(each)} for each in found]
    return pd.DataFrame(rows)
