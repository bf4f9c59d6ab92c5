"""What the trials that train networks write down: callbacks at epochs, test errors, and one long table.

A row has the network's seed, the epoch (0: before training), a quantity, a layer (0: of the whole network; 1, 2, … in
order of depth) and a value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor

from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.training.loop import Callback, History, Rows

if TYPE_CHECKING:
    import pandas as pd

Found = tuple[str, int, Tensor]  # a quantity, a layer, and its values, one per network
CHUNK = 1000  # samples at once when testing: bounds memory, changes nothing


def at_epochs(epochs: Iterable[int], steps: int, measure: Callable[[Ensemble], Iterable[Found]]) -> Callback:
    """Measure the networks in evaluation mode after so many epochs of so many ``steps``."""
    at = {epoch * steps: epoch for epoch in epochs}

    def rows(ensemble: Ensemble, step: int) -> Rows:
        ensemble.train(False)
        return [
            {"member": member, "epoch": at[step], "quantity": quantity, "layer": layer, "value": value}
            for quantity, layer, values in measure(ensemble)
            for member, value in enumerate(values.tolist())
        ]

    return Callback(frozenset(at), rows)


def path_lengths(epochs: Iterable[int], steps: int, samples: TensorSet, count: int, at_once: int) -> Callback:
    """Path lengths on the first ``count`` samples, and of gradients on ``at_once``; a row's layer is the length.

    See ``path_measures``; what is of all lengths has layer −1.
    """
    at = {epoch * steps: epoch for epoch in epochs}

    def rows(ensemble: Ensemble, step: int) -> Rows:
        from skiplab.reproduction.arithmetic import full_float32
        from skiplab.studies.littwin2017.path_measures import path_rows

        few = (samples.inputs[:count], samples.labels[:count])
        with full_float32():  # in tf32 parts need not add up to the output as closely as path_depth asks
            found = path_rows(ensemble, *few, at_once=at_once)
        named = {"network": "member", "length": "layer"}
        return [
            {"epoch": at[step], **{named.get(key, key): value for key, value in row.items()}} for row in found
        ]

    return Callback(frozenset(at), rows)


def held_out_errors(ensemble: Ensemble, samples: TensorSet, *, mixed: bool = False) -> Iterator[Found]:
    """Loss and error on samples that training has not seen; in bfloat16 where training is."""
    loss = torch.zeros(ensemble.size, dtype=torch.float64, device=ensemble.device)
    wrong = torch.zeros_like(loss)
    for inputs, labels in zip(samples.inputs.split(CHUNK), samples.labels.split(CHUNK), strict=True):
        with torch.no_grad(), torch.autocast(ensemble.device.type, torch.bfloat16, enabled=mixed):
            outputs = ensemble(inputs).float()
        for member, own in enumerate(outputs):
            loss[member] += F.cross_entropy(own, labels, reduction="sum").double()
        wrong += (outputs.argmax(-1) != labels).sum(1)
    yield "test_loss", 0, loss / len(samples)
    yield "test_error", 0, wrong / len(samples)


def norms(tensors: Sequence[Tensor]) -> Tensor:
    """The Euclidean norm of all numbers of some tensors (E, …) together, per network (E,)."""
    return torch.stack([each.double().square().flatten(1).sum(1) for each in tensors]).sum(0).sqrt()


def table(
    seeds: Sequence[int], history: History, epochs: Iterable[int], more: Rows | None = None
) -> pd.DataFrame:
    """A trial's long table: what was measured, and running means of loss and error in the epochs asked for."""
    import pandas as pd

    rows: list[dict[str, Any]] = [*history.rows, *(more or [])]
    for quantity, values in {"loss": history.loss, "error": 1 - history.accuracy}.items():
        for epoch in epochs:
            if 1 <= epoch <= len(values):
                rows += [
                    {"member": member, "epoch": epoch, "quantity": quantity, "layer": 0, "value": value}
                    for member, value in enumerate(values[epoch - 1].tolist())
                ]
    members = pd.DataFrame(
        {"member": range(len(seeds)), "seed": seeds, "diverged": history.diverged.tolist()}
    )
    frame = pd.DataFrame(rows).merge(members, on="member").drop(columns="member")
    return frame.astype({"quantity": "category", "epoch": "int16", "layer": "int16"})
