"""Which weight layer an activation reads: the last one that the pass called before it."""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis.chart import Chart
from skiplab.diagnosis.patient import Patient
from skiplab.subjects.hooks import visited
from skiplab.subjects.weight_layers import weight_layers


def layer_before(chart: Chart, activation: str) -> str | None:
    """The weight layer that was called last before a module or a function ("scope: name") that is an activation."""
    module = activation.partition(":")[0].partition("#")[0]
    return _order(chart.patient).get(module)


@functools.lru_cache(maxsize=4)
def _order(patient: Patient) -> dict[str, str]:
    """By the name of each module that was called, the last weight layer whose call had begun before its first call ended."""
    names = {part: name for name, part in patient.module.named_modules()}
    layers = set(weight_layers(patient.module))
    last: list[str] = []
    found: dict[str, str] = {}

    def note(part: nn.Module, *_: object) -> None:
        name = names[part]
        if name in layers:
            last.append(name)
        elif last:
            found.setdefault(name, last[-1])

    def run(model: nn.Module) -> Tensor:
        patient.subject.call(model, patient.batch)
        return torch.zeros(())

    try:
        with patient.subject.borrowed(), torch.no_grad(), visited(after=[(part, note) for part in names]):
            patient.subject.map_models(run)
    except Refused:
        return {}
    return found
