"""What the command line diagnoses: a network by name, with samples and a loss that its function may bring along."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from skiplab.checks import Refused
from skiplab.diagnosis.data import named_batch
from skiplab.diagnosis.loading import load_factory
from skiplab.diagnosis.patient import SAMPLES
from skiplab.subjects.batches import Batch
from skiplab.subjects.subject import Criterion

RANDOM = "random"
# What networks of timm and torchvision are asked for, so that they fit the data: classes and channels.
FITTING = {"digits": (10, 1), "cifar10": (10, 3), RANDOM: (None, None)}


@dataclass(frozen=True)
class LoadedTarget:
    """A network with samples; ``data`` says where these come from."""

    name: str
    model: nn.Module
    batch: Batch
    criterion: Criterion | None
    data: str


def load_target(text: str, data: str | None = None, samples: int = SAMPLES, seed: int = 0) -> LoadedTarget:
    """Make the network that a text names, ``file.py:factory``, ``timm:NAME`` or ``torchvision:NAME``.

    A function may return a module, (module, batch) or (module, batch, criterion); named data count more than a batch
    that it returns. With neither, samples are random ones of a kind that the network takes.
    """
    classes, channels = FITTING.get(data or RANDOM, (None, None))
    factory = load_factory(text, classes=classes, channels=channels)
    made = factory.made(seed)
    model, batch, criterion = parts_of(text, made)
    if data is None and batch is not None:
        return LoadedTarget(factory.name, model, batch, criterion, "the batch that came with the network")
    name = data or RANDOM
    drawn = named_batch(name, model, samples, seed)
    return LoadedTarget(factory.name, model, drawn, criterion, f"{samples} samples, {name}")


def parts_of(text: str, made: Any) -> tuple[nn.Module, Batch | None, Criterion | None]:
    """A network, its batch and its criterion, of what a function returned."""
    parts = list(made) if isinstance(made, tuple | list) else [made]
    if not 1 <= len(parts) <= 3 or not isinstance(parts[0], nn.Module):
        kinds = ", ".join(type(part).__name__ for part in parts[:4])
        found = f"({kinds})" if isinstance(made, tuple | list) else kinds
        raise Refused(
            f"{text} returns {found}; let it return a torch.nn.Module, (module, batch) or (module, batch, criterion)."
        )
    criterion = parts[2] if len(parts) == 3 else None
    if criterion is not None and not callable(criterion):
        raise Refused(
            f"{text} returns a {type(criterion).__name__} as its criterion; let it be a function of outputs, targets."
        )
    return parts[0], parts[1] if len(parts) > 1 else None, criterion
