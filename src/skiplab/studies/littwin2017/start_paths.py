"""Path lengths of small residual networks before training: studies ``bn-start`` and ``paths``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.architectures.path_toys import BlockToy

INPUTS, CLASSES = 50, 10  # appendix C


@dataclass(frozen=True)
class StartPaths:
    """Networks of one kind, one per seed, on standard normal inputs (table 1 of the paper).

    ``scale`` multiplies λ of the skipped layers, ``every_scale`` λ and shifts of all layers, shifts being drawn then.
    """

    seeds: tuple[int, ...]
    norm: str | None
    blocks: int = 10
    width: int = 20
    gain: float = 1.0
    scale: float = 1.0
    every_scale: float | None = None
    samples: int = 512


@trial("littwin2017/start-paths", version=1)
def start_paths(settings: StartPaths, bench: Bench) -> pd.DataFrame:
    """One row per network, quantity and length (``path_measures``), in float64."""
    import pandas as pd
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.studies.littwin2017.path_measures import path_rows

    rows: list[dict[str, Any]] = []
    for seed in settings.seeds:
        stream = torch_generator(seed, "inputs")
        inputs = torch.randn(settings.samples, INPUTS, generator=stream, dtype=torch.float64)
        rows += [row | {"seed": seed} for row in path_rows(network(settings, seed), inputs)]
    frame = pd.DataFrame(rows).drop(columns="network")
    named = {
        "norm": settings.norm or "none",
        **{name: getattr(settings, name) for name in ("blocks", "width", "gain", "scale")},
        "every_scale": settings.every_scale or 0.0,
    }
    return frame.assign(**named)


def network(settings: StartPaths, seed: int) -> BlockToy:
    """One network; with the same seed the same weights, whatever the normalisation."""
    import torch

    from skiplab.architectures.path_toys import BlockToy
    from skiplab.randomness import torch_generator

    net = BlockToy(
        INPUTS,
        CLASSES,
        settings.width,
        settings.blocks,
        generator=torch_generator(seed, "network"),
        norm=settings.norm,
        gain=settings.gain,
        dtype=torch.float64,
    )
    with torch.no_grad():
        for place, name in enumerate(net.scales()):
            norm = net.get_submodule(name.rpartition(".")[0])
            scale, shift = norm.get_parameter("weight"), norm.get_parameter("bias")
            if settings.every_scale is not None:
                norm.eps = 1e-30  # type: ignore[assignment]  # with torch's 1e-5 later BN cancels a factor but for that
                shift.copy_(torch.randn(shift.shape, generator=torch_generator(seed, "shifts", place)))
                scale.mul_(settings.every_scale)
                shift.mul_(settings.every_scale)
            elif place:
                scale.mul_(settings.scale)
    return net
