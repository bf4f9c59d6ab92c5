"""What normalisation divides by, and how large activities become, layer by layer (eq 22 with every λ = 1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial
from skiplab.studies.littwin2017.start_paths import CLASSES, INPUTS

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

BY_UNIT = "centred, by unit"
ONE = "centred, one σ"
PRINTED = "not centred, one σ"  # eq 22 to the letter: it "ignores the additive terms"
BEFORE = "before ReLU"
VARIANTS = (BY_UNIT, ONE, PRINTED, BEFORE)
MOMENT, DEVIATION = "second moment", "deviation"


@dataclass(frozen=True)
class Streams:
    """Settings: networks with one way of normalising, one per seed, ``layers`` deep, on so many ``inputs``."""

    seeds: tuple[int, ...]
    variant: str
    width: int
    layers: int
    samples: int
    inputs: int = INPUTS


@trial("littwin2017/bn-streams", version=1)
def streams(settings: Streams, bench: Bench) -> pd.DataFrame:
    """E[N_l²] over samples and units, and the mean over units of σ_l, one row per network, layer and quantity."""
    import pandas as pd
    import torch

    from skiplab.architectures.path_toys import BlockToy
    from skiplab.randomness import torch_generator

    rows = []
    for seed in settings.seeds:
        net = BlockToy(
            settings.inputs,
            CLASSES,
            settings.width,
            settings.layers,
            generator=torch_generator(seed, "network"),
            dtype=torch.float64,
        )
        h = torch.randn(
            settings.samples, settings.inputs, generator=torch_generator(seed, "inputs"), dtype=torch.float64
        )
        with torch.no_grad():
            for layer, block in enumerate(net.blocks, 1):
                added, deviation = normalised(h @ block.get_parameter("linear.weight").T, settings.variant)
                h = added + h if layer > 1 else added
                found = {MOMENT: h.square().mean(), DEVIATION: deviation}
                rows += [
                    {"seed": seed, "layer": layer, "quantity": quantity, "value": value.item()}
                    for quantity, value in found.items()
                ]
    return pd.DataFrame(rows).assign(variant=settings.variant, width=settings.width)


def normalised(field: Tensor, variant: str) -> tuple[Tensor, Tensor]:
    """What a layer adds to the stream, and the mean over units of the deviation that it divided by."""
    import torch

    x = field if variant == BEFORE else torch.relu(field)
    variance, mean = torch.var_mean(x, 0, correction=0)
    by_unit = (variance + 1e-5).sqrt()
    deviation = by_unit.mean()
    centred = x if variant == PRINTED else x - mean
    scaled = centred / (by_unit if variant in (BY_UNIT, BEFORE) else deviation)
    return torch.relu(scaled) if variant == BEFORE else scaled, deviation
