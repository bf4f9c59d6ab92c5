"""Which layer feeds which normalisation and which activation, found by running a network once on a batch.

A module continues another where it is given the very memory that the other returned, unchanged since: additions,
concatenations and products in between make other memory, or count up the tensor's version.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.subjects.hooks import visited
from skiplab.subjects.rectifiers import is_rectifier
from skiplab.subjects.weight_layers import is_transposed, is_weight_layer

BOUNDED = (nn.Tanh, nn.Sigmoid, nn.Hardsigmoid)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.GroupNorm, nn.LayerNorm)


@dataclass
class Site:
    """A weight layer, the normalisation and the activation directly behind it, and what passes there."""

    layer: str
    norm: str | None = None
    activation: str | None = None
    given: float = 0.0  # RMS of the layer's input
    product: float = 0.0  # RMS of the layer's output without its bias
    largest: float = 0.0  # largest output of the layer, in size
    sizes: list[float] = field(default_factory=list)  # RMS of the layer's outputs, one for each call

    @property
    def names(self) -> frozenset[str]:
        """The names of the three."""
        return frozenset(name for name in (self.layer, self.norm, self.activation) if name is not None)


def is_bounded(part: nn.Module) -> bool:
    """Whether a module is a tanh or a sigmoid, torch's or one of timm's or transformers' own classes."""
    names = {"Sigmoid", "Tanh", "HardSigmoid", "Hardsigmoid"}
    return isinstance(part, BOUNDED) or type(part).__name__ in names


def is_activation(part: nn.Module) -> bool:
    """Whether a module is a rectifier, a tanh or a sigmoid."""
    return is_bounded(part) or is_rectifier(part)


def called(model: nn.Module, batch: Any) -> Any:
    """What a model returns for a batch: a dict's entries by name, or the input of a pair."""
    return model(**batch) if isinstance(batch, dict) else model(batch[0])


@contextmanager
def watched(model: nn.Module, *, train: bool = False) -> Iterator[None]:
    """Have a model in evaluation mode, or in training mode, without gradients, and put its mode back."""
    modes = {part: part.training for part in model.modules()}
    model.train(train)
    try:
        with torch.no_grad():
            yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def outputs(
    model: nn.Module, batch: Any, names: set[str] | frozenset[str], *, train: bool = False
) -> dict[str, Tensor]:
    """What named modules returned when last called, as a rule in evaluation mode; of a tuple its first tensor."""
    found: dict[str, Tensor] = {}

    def keep(name: str) -> Any:
        def visit(part: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
            tensor = (
                output if isinstance(output, Tensor) else next(t for t in output if isinstance(t, Tensor))
            )
            found[name] = tensor.clone()

        return visit

    parts = dict(model.named_modules())
    with watched(model, train=train), visited(after=[(parts[name], keep(name)) for name in names]):
        called(model, batch)
    return found


def rms(tensor: Tensor) -> float:
    """Root of the mean square of all entries."""
    return float(tensor.double().square().mean().sqrt())


def sites(model: nn.Module, batch: Any) -> tuple[Site, ...]:
    """The weight layers of a network in the order of their (last) calls."""
    found: dict[str, Site] = {}
    makers: dict[tuple[int, int], tuple[Site, int]] = {}  # by memory and size: who made it, at which version
    kept: list[Tensor] = []  # memory must not be given to others while the pass lasts

    def after_layer(name: str) -> Any:
        def visit(part: Any, args: Any, kwargs: Any, output: Tensor) -> None:
            site = found.pop(name, None) or Site(name)
            product = output if part.bias is None else output - _shaped(part, part.bias, output)
            site.given, site.product = rms(args[0]), rms(product)
            site.largest = max(site.largest, float(output.abs().max()))
            site.sizes.append(rms(output))
            found[name] = site
            kept.append(output)
            makers[output.data_ptr(), output.numel()] = site, output._version

        return visit

    def before_next(name: str, attribute: str) -> Any:
        def visit(part: nn.Module, args: Any, kwargs: Any) -> None:
            taken = args[0] if args else next(iter(kwargs.values()))
            site, version = makers.pop((taken.data_ptr(), taken.numel()), (None, -1))
            if site is None or taken._version != version or site.activation not in (None, name):
                return
            setattr(site, attribute, name)
            current.append((part, site))

        return visit

    def after_norm(part: nn.Module, args: Any, kwargs: Any, output: Tensor) -> None:
        if current and current[-1][0] is part:
            site = current.pop()[1]
            act = next((n for n, p in part.named_modules() if n and is_activation(p)), None)
            if act is not None:  # timm's normalisations call an activation themselves
                site.activation = f"{site.norm}.{act}"
            kept.append(output)
            makers[output.data_ptr(), output.numel()] = site, output._version

    current: list[tuple[nn.Module, Site]] = []
    before, after = [], []
    for name, part in model.named_modules():
        if is_weight_layer(part):
            after.append((part, after_layer(name)))
        elif isinstance(part, NORMS) and part.weight is not None:
            before.append((part, before_next(name, "norm")))
            after.append((part, after_norm))
        elif is_activation(part) and not any(True for _ in part.parameters()):
            before.append((part, before_next(name, "activation")))
    with watched(model), visited(before=before, after=after):
        called(model, batch)
    return tuple(found.values())


def _shaped(part: nn.Module, bias: Tensor, output: Tensor) -> Tensor:
    after = len(getattr(part, "kernel_size", ()))
    return bias.reshape(-1, *[1] * after)


def units_first(part: Any) -> Tensor:
    """A layer's weights (units, …), in the layer's own memory."""
    weight: Tensor = part.weight
    return weight.transpose(0, 1) if is_transposed(part) else weight
