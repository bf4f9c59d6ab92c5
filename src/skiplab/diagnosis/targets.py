"""What the command line diagnoses or compares: networks by name, with samples and a loss that functions may bring."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.diagnosis.data import named_batch
from skiplab.diagnosis.factory import Factory
from skiplab.diagnosis.loading import load_factory, signature_of
from skiplab.diagnosis.patient import SAMPLES
from skiplab.subjects.batches import Batch
from skiplab.subjects.subject import Criterion
from skiplab.torch_private import tree_flatten

DIGITS, RANDOM = "digits", "random"
# What networks of timm and torchvision are asked for, so that they fit the data: classes and channels.
FITTING = {DIGITS: (10, 1), "cifar10": (10, 3), RANDOM: (None, None)}


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


@dataclass(frozen=True)
class LoadedModels:
    """Functions that make networks by name, the samples for all of them, a set's name or a batch, and their loss."""

    makers: dict[str, Callable[..., nn.Module] | nn.Module]
    data: Any
    criterion: Criterion | None


def load_models(texts: Sequence[str], data: str | None = None) -> LoadedModels:
    """What several texts name, to be compared: as ``load_target`` has it, but for samples and loss, which all share.

    Functions may return a module, (module, batch) or (module, batch, criterion), and all of them the same: the batch
    of seed 0 is every network's. Named data count more than a batch; with neither it is digits.
    """
    classes, channels = FITTING[data or DIGITS]
    loaded = [load_factory(text, classes=classes, channels=channels) for text in texts]
    names = [factory.name for factory in loaded]
    factories = {
        factory.name if names.count(factory.name) == 1 else text: factory
        for text, factory in zip(texts, loaded, strict=True)
    }
    brought = {name: parts_of(name, factory.made())[1:] for name, factory in factories.items()}
    first, (batch, criterion) = next(iter(brought.items()))
    for name, (other, loss) in brought.items():
        if data is None:
            _require_same(first, name, "samples", _same_batch(batch, other), (batch, other))
        _require_same(first, name, "a criterion", _same_criterion(criterion, loss), (criterion, loss))
    samples = data or (DIGITS if batch is None else batch)
    return LoadedModels({name: _module_alone(each) for name, each in factories.items()}, samples, criterion)


def _require_same(one: str, other: str, what: str, is_same: bool, brought: tuple[Any, Any]) -> None:
    """Refuse functions that do not bring the same, since all networks are trained alike."""
    if is_same:
        return
    with_it, without = (one, other) if brought[1] is None else (other, one)
    if any(each is None for each in brought):
        found = f"{with_it} returns {what} and {without} returns none"
    else:
        found = f"{one} and {other} return {what} each, and not the same"
    choice = " or name --data" if what == "samples" else ""
    raise Refused(f"{found}; make it once in the file and return it from every function{choice}.")


def _same_batch(one: Any, other: Any) -> bool:
    """Whether two batches hold the same tensors; a loader is the same only as itself."""
    if one is other:
        return True
    (ours, nesting), (theirs, other_nesting) = tree_flatten(one), tree_flatten(other)
    if nesting != other_nesting:
        return False
    return all(
        a is b
        or (
            isinstance(a, Tensor)
            and isinstance(b, Tensor)
            and (a.shape, a.dtype) == (b.shape, b.dtype)
            and bool(torch.equal(a, b))
        )
        for a, b in zip(ours, theirs, strict=True)
    )


def _same_criterion(one: Any, other: Any) -> bool:
    """Whether two criterions are one, or two modules of the same kind, settings and weights, or one line of code."""
    if one is other:
        return True
    if isinstance(one, nn.Module) and type(one) is type(other):
        weights = one.state_dict(), other.state_dict()
        return _settings_of(one) == _settings_of(other) and _same_batch(*map(dict, weights))
    code = [getattr(each, "__code__", None) for each in (one, other)]
    return code[0] is not None and code[0] == code[1] and not (one.__closure__ or other.__closure__)


def _settings_of(module: nn.Module) -> tuple[str, str]:
    """What a module without weights is told apart by: its parts, and its plain attributes."""
    plain = {name: value for name, value in vars(module).items() if isinstance(value, str | int | float)}
    return repr(module), repr(sorted(plain.items()))


def _module_alone(factory: Factory) -> Callable[..., nn.Module] | nn.Module:
    """The function of a factory without what it returns beside the network."""
    make = factory.make
    if isinstance(make, nn.Module):
        return make

    def alone(**drawn: Any) -> nn.Module:
        return parts_of(factory.name, make(**drawn))[0]

    # The factory's own function may draw from a seed or generator.
    alone.__signature__ = signature_of(make)  # type: ignore[attr-defined]
    return alone


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
