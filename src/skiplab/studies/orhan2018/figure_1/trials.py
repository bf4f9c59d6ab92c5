"""Random layers at four kinds of singular points, plain and with skips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

KINDS = ("zero incoming", "zero outgoing", "overlap", "linear dependence")
NETWORKS = ("plain", "residual")


@dataclass(frozen=True)
class SingularLayers:
    """Settings of one trial: some of the random layers."""

    seeds: tuple[int, ...]
    units: int = 6
    samples: int = 60
    reach: float = 2.0
    steps: int = 21


@trial("orhan2018/singular-layers", version=1)
def layers(settings: SingularLayers, bench: Bench) -> pd.DataFrame:
    """Build the four singular points for every seed, plain and with skips, and measure them exactly.

    ``loss`` is the loss along the first direction relative to its start, at step ``x``; ``deviation`` the largest
    change over all directions and steps; ``curvature`` the dᵀHd that is farthest from 0 (plain) or nearest to it
    (residual), relative to H's largest eigenvalue; ``push`` the smallest ‖Hd‖, relative too; ``eigenvalue`` those of
    the Gauss–Newton block, ``extra_zeros`` its zeros less those of the same layer beside the point.
    """
    import pandas as pd
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.singular.layers import curvature, loss_along, singular_layer, zeros

    steps = torch.linspace(-settings.reach, settings.reach, settings.steps, dtype=torch.float64)
    rows: list[tuple[int, str, str, str, float, float]] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"layer {seed}")
        for kind in KINDS:
            for network in NETWORKS:
                size = (settings.units, settings.samples)
                skip = network == "residual"
                at, beside = (
                    singular_layer(
                        kind, *size, torch_generator(seed, "singular layer", kind), beside=off, skip=skip
                    )
                    for off in (False, True)
                )
                here, there = curvature(at), curvature(beside)
                start = float(at.loss(at.weights))
                losses = torch.stack([loss_along(at, d, steps) for d in at.directions]) / start
                change = (losses - 1).abs().amax(1)
                along = (here.along / here.scale).abs()
                found: dict[str, Any] = {
                    "deviation": change.min() if skip else change.max(),
                    "curvature": along.min() if skip else along.max(),
                    "push": here.pushed.min() / here.scale,
                    "extra_zeros": zeros(here.block_spectrum) - zeros(there.block_spectrum),
                    "hessian_scale": here.scale,
                }
                rows += [(seed, kind, network, name, 0.0, float(value)) for name, value in found.items()]
                rows += [
                    (seed, kind, network, "loss", float(x), float(y))
                    for x, y in zip(steps, losses[0], strict=True)
                ]
                shown = here.block_spectrum / here.block_spectrum.max()
                rows += [
                    (seed, kind, network, "eigenvalue", k, float(y)) for k, y in enumerate(shown, start=1)
                ]
    return pd.DataFrame(rows, columns=["draw", "kind", "network", "quantity", "x", "value"])
