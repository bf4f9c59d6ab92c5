"""Where the time of a training trial goes besides its steps: what is done once, or for one network after another."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skiplab.benchmarks.ceilings import wait_for
from skiplab.benchmarks.profile import TRIAL, Kernel, Profile
from skiplab.benchmarks.training import TrainingSize

NORM_SAMPLES = 500  # on which a trial measures gradient norms


def trial_profile(size: TrainingSize, device: str) -> Profile:
    """The parts of a trial of one epoch, in their order; what the process has compiled before is there already."""
    import torch.nn.functional as F

    from skiplab.benchmarks.steps import noise, our_step, own_batches
    from skiplab.ensembles import Ensemble
    from skiplab.files import aside_folder
    from skiplab.measurements.gradient_norms import gradient_norms
    from skiplab.training.checkpoints import Checkpoints
    from skiplab.training.loop import shuffles

    parts: list[Kernel] = []

    @contextmanager
    def part(name: str, calls: int = 1) -> Iterator[None]:
        started = time.perf_counter()
        yield
        wait_for(device)
        parts.append(Kernel(name, time.perf_counter() - started, calls))

    data = noise(size.images, size.inputs, device=device)
    wait_for(device)
    with part("networks drawn and stacked", size.networks):
        ensemble = Ensemble.drawn(size.network, size.networks, backend="batched", device=device)
    with part("the first step"):
        step = our_step(ensemble, data, mixed=device.startswith("cuda"))
        step(own_batches(step, size.batch))
    with part("an epoch's shuffles", size.networks):
        order = shuffles(range(size.networks), 0, size.images, ensemble.device)
    with part("an epoch's steps", size.images // size.batch):
        for indices in order.split(size.batch, dim=1):
            step(indices)
    some = data.inputs[:NORM_SAMPLES], data.labels[:NORM_SAMPLES]
    with part("gradient norms"):
        gradient_norms(ensemble, some, criterion=F.cross_entropy, mode="train")
    with aside_folder(Path(tempfile.gettempdir())) as folder, part("state saved"):
        Checkpoints(folder).save(step.tensors, {"epoch": 1})
    what = f"{TRIAL} of {size.networks} residual networks of {size.depth} layers, one epoch"
    return Profile(what, sum(each.seconds for each in parts), tuple(parts))
