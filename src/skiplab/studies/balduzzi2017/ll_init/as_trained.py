"""The looks-linear network that figure 6 trains, before its first step: how linear it is, and how well computed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, Evidence, Results, trial

if TYPE_CHECKING:
    import pandas as pd

NORMS = {"without BN": False, "with BN": True}


@dataclass(frozen=True)
class TrainedStarts:
    """Settings of one trial: figure 6's networks of one depth, with and without batch normalisation."""

    depth: int
    seeds: tuple[int, ...]
    side: int
    samples: int = 16


@trial("balduzzi2017/looks-linear-as-trained", version=1)
def as_trained(settings: TrainedStarts, bench: Bench) -> pd.DataFrame:
    """Build figure 6's networks and show them a batch of standard normal images.

    ``departure`` is from superposition in float64, with the batch's statistics held; ``rounding`` is 1 − the mean
    cosine of outputs, less their mean over images, in float32 and in float64, both with the batch's own statistics
    as in training.
    """
    import copy

    import pandas as pd
    import torch

    from skiplab.architectures.initialisers import standard_normal
    from skiplab.data import TensorSet
    from skiplab.randomness import torch_generator
    from skiplab.remedies.linearity import departure_from_linear
    from skiplab.studies.balduzzi2017.figure_6.trials import ThinNetworks, ThinTraining, build

    rows = []
    for number, seed in enumerate(settings.seeds):
        bench.tell(number / len(settings.seeds), f"network {seed}")
        sizes = (settings.samples, 3, settings.side, settings.side)
        x = standard_normal(sizes, torch_generator(seed, "as trained inputs"))
        images = TensorSet(x.float(), torch.zeros(len(x), dtype=torch.long), 10, "noise", "noise")
        for words, batch_norm in NORMS.items():
            training = ThinTraining(batch_norm=batch_norm)
            wanted = ThinNetworks("noise", "crelu-ll", settings.depth, (seed,), training)
            single = build(wanted, images, seed).train()
            double = copy.deepcopy(single).double()
            for part in double.modules():
                if isinstance(part, torch.nn.BatchNorm2d):
                    part.momentum = 1.0  # one batch leaves its own statistics behind
            with torch.no_grad():
                outputs = [single(x.float()).double(), double(x)]
            one, other = (each - each.mean(0) for each in outputs)
            cosine = torch.nn.functional.cosine_similarity(one, other, dim=1).mean()
            check = torch_generator(seed, "as trained check")
            found = {
                "departure": departure_from_linear(double, x[:4], check, draws=2),
                "rounding": float(1 - cosine),
            }
            rows += [(seed, words, quantity, value) for quantity, value in found.items()]
    frame = pd.DataFrame(rows, columns=["draw", "network", "quantity", "value"])
    return frame.assign(depth=settings.depth)


def departures(results: Results) -> Iterator[Evidence]:
    """How far figure 6's networks without batch normalisation are from linear; those with it are a further row."""
    return _rows(results, "departure", "without BN")


def roundings(results: Results) -> Iterator[Evidence]:
    """How far float32 is from float64 in the networks that figure 6 trains, which have batch normalisation."""
    return _rows(results, "rounding", "with BN")


def _rows(results: Results, quantity: str, own: str) -> Iterator[Evidence]:
    for words in NORMS:
        found = results.rows(as_trained, quantity=quantity, network=words)
        worst = found.groupby("depth")["value"].max()
        detail = ", ".join(f"{value:.2g} at depth {depth}" for depth, value in worst.items())
        where = f"as figure 6 trains them, {words}"
        yield Evidence(where, [found["value"].tolist()], headline=words == own, detail=detail)
