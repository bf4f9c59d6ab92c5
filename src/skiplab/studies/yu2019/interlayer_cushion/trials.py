"""Cushions of the middle block before training, over modes of batch normalisation and sizes of batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd

EVAL, CONSTANT, TRAIN = "eval", "batch", "train"  # running statistics, the batch's as constants, the batch's
STANDARDISED_BY = 1000  # images, whose mean and scale are those of all within a percent
SAMPLE, BATCH = "sample", "batch"  # each image's own Jacobian, or that of the batch as one vector


@dataclass(frozen=True)
class Untrained:
    """Settings: networks of one model as they are drawn, the first training images, and batches of some sizes."""

    data: str
    model: str
    seeds: tuple[int, ...]
    depth: int = 20
    filters: tuple[int, ...] = (16, 32, 64)
    images: int = 16
    batch_sizes: tuple[int, ...] = (1, 2, 4, 16)
    probes: int = 32


@trial("yu2019/untrained-cushions", version=1)
def untrained_cushions(settings: Untrained, bench: Bench) -> pd.DataFrame:
    """A row per network, mode and size of batches with the mean cushion of the middle block over images or batches.

    Evaluation mode has one size, since images do not depend on each other there; constants need two images.
    """
    import pandas as pd

    from skiplab.ensembles import Ensemble
    from skiplab.measurements.noise_stability.interlayer_cushions import interlayer_cushions
    from skiplab.reproduction.arithmetic import full_float32
    from skiplab.studies.yu2019.gradients import blocks_of
    from skiplab.studies.yu2019.measured import first, parts
    from skiplab.studies.yu2019.networks import Networks, Training, build, samples_of

    standardised_by = None if settings.data == "digits" else STANDARDISED_BY
    samples = samples_of(settings.data, "train", standardised_by, None, bench.device)
    like = Networks(
        data=settings.data,
        model=settings.model,
        depth=settings.depth,
        seeds=settings.seeds,
        training=Training(),
        filters=settings.filters,
    )
    nets = Ensemble.of([build(like, samples, seed) for seed in settings.seeds], device=bench.device)
    names = blocks_of(nets)
    rows: list[dict[str, Any]] = []
    cells = [(EVAL, SAMPLE, settings.images)]
    for size in settings.batch_sizes:
        cells += [(CONSTANT, SAMPLE, size)] if size > 1 else []
        cells += [(TRAIN, SAMPLE, size), (TRAIN, BATCH, size)]
    for number, (mode, over, size) in enumerate(cells):
        batches = parts(first(samples, settings.images), size)
        own: dict[str, Any] = {"mode": mode, "over": over, "probes": settings.probes}
        with full_float32():
            found = interlayer_cushions(nets, batches, layers=[names[len(names) // 2]], **own)
        rows += [
            {"model": settings.model, "seed": seed, "mode": mode, "over": over, "size": size, "value": value}
            for seed, value in zip(settings.seeds, found.cushions[..., 0].mean(1).tolist(), strict=True)
        ]
        bench.tell((number + 1) / len(cells), f"{mode} mode, batches of {size}")
    return pd.DataFrame(rows)
