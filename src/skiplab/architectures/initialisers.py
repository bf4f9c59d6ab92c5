"""How weights start: mostly Gaussian with a deviation set by a layer's fans, and biases of zero.

A layer's fan-in S is the number of inputs one of its units sees (C·U·V for C input channels and a U × V
kernel), its fan-out the number of units one input reaches. Numbers are drawn in float64 and then rounded,
so a seed names the same network in every precision, and always from the generator passed in.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, one_of, require
from skiplab.randomness import torch_generator

Layer = TypeVar("Layer", bound=nn.Module)
AnyModule = TypeVar("AnyModule", bound=nn.Module)

WEIGHTED = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)


def undrawn(kind: type[Layer], *sizes: int, dtype: torch.dtype, **settings: Any) -> Layer:
    """Create a layer whose weights are not yet drawn; torch's own constructors use the global generator."""
    # torch.nn.utils.skip_init does the same in 100 µs per layer instead of 13.
    quick = _filled_by_nobody(kind)  # type: ignore[arg-type]  # mypy: classes of a type variable are not hashable
    layer: Layer = quick(*sizes, device="cpu", dtype=dtype, **settings)
    layer.__class__ = kind
    return layer


@functools.cache
def _filled_by_nobody(kind: type[nn.Module]) -> type[Any]:
    """The kind of layer without the method by which its constructor draws."""
    return type(kind.__name__, (kind,), {"reset_parameters": lambda self: None})


def standard_normal(shape: Sequence[int], generator: torch.Generator) -> Tensor:
    """Draw float64 standard normal numbers, on the CPU whatever the generator's device."""
    if not isinstance(generator, torch.Generator):
        raise Refused(
            f"generator is {generator!r}, but must be a torch.Generator, such as "
            "skiplab.randomness.torch_generator(seed) returns."
        )
    drawn = torch.randn(tuple(shape), generator=generator, device=generator.device, dtype=torch.float64)
    return drawn.cpu()


def bias_noise(count: int, seed: int) -> Tensor:
    """Draw the float64 standard normal numbers of which random targets of a network's biases are made."""
    return standard_normal((count,), torch_generator(seed, "bias targets"))


def fans(layer: nn.Module) -> tuple[int, int]:
    """Return (fan_in, fan_out) of a linear or convolutional layer, grouped convolutions included."""
    weight = layer.weight
    assert isinstance(weight, Tensor)
    groups = layer.groups if isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d) else 1
    window = math.prod(weight.shape[2:])
    return weight.shape[1] * window, weight.shape[0] // groups * window


class Initialiser(ABC):
    """A rule for the deviation of a layer's first weights."""

    @abstractmethod
    def deviation(self, fan_in: int, fan_out: int) -> float:
        """Return the standard deviation of the weights of a layer with these fans."""

    def apply(self, module: AnyModule, generator: torch.Generator) -> AnyModule:
        """Draw the weights of linear and convolutional layers inside, zero their biases, return the whole."""
        with torch.no_grad():
            for layer in module.modules():
                if isinstance(layer, WEIGHTED):
                    self._draw(layer, generator)
        return module

    def _draw(self, layer: nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d, generator: torch.Generator) -> None:
        if isinstance(layer.weight, nn.UninitializedParameter):
            raise Refused(
                f"{layer} has no shape yet; pass one batch through the module before initialising it."
            )
        layer.weight.copy_(standard_normal(layer.weight.shape, generator).mul_(self.deviation(*fans(layer))))
        if layer.bias is not None:
            layer.bias.zero_()


def _scale(what: str, value: float) -> None:
    require(0 <= value < math.inf, f"{what} is {value}, but must be a finite number of at least 0.")


@dataclass(frozen=True)
class Glorot(Initialiser):
    """Glorot & Bengio (2010) with a gain g: variance 2g²/(fan_in + fan_out)."""

    gain: float = 1.0

    def __post_init__(self) -> None:
        _scale("gain", self.gain)

    def deviation(self, fan_in: int, fan_out: int) -> float:
        return self.gain * math.sqrt(2 / (fan_in + fan_out))


GLOROT = Glorot()


@dataclass(frozen=True)
class He(Initialiser):
    """He et al. (2015) with a gain g: variance 2g²/fan_in.

    ``counts="output"`` has the fan-out instead, as in the public Torch code for residual networks.
    """

    gain: float = 1.0
    counts: str = "input"

    def __post_init__(self) -> None:
        _scale("gain", self.gain)
        one_of("counts", self.counts, ("input", "output"))

    def deviation(self, fan_in: int, fan_out: int) -> float:
        return self.gain * math.sqrt(2 / (fan_in if self.counts == "input" else fan_out))


@dataclass(frozen=True)
class KWI(Initialiser):
    """yu2019 eq 3, for plain networks ("Kaiming"): deviation √(2/S), S = C·U·V the fan-in."""

    def deviation(self, fan_in: int, fan_out: int) -> float:
        return math.sqrt(2 / fan_in)


@dataclass(frozen=True)
class HMWI(Initialiser):
    """yu2019 eq 4, for residual networks ("Hartz-Ma"): deviation 1/S.

    The text has S = C·U·V with C input channels. The paper's own numbers have output channels (Table 3's mass of
    1,900, Table 4's weight decay before training), which is the default; ``counts="input"`` is what is printed.
    """

    counts: str = "output"

    def __post_init__(self) -> None:
        one_of("counts", self.counts, ("output", "input"))

    def deviation(self, fan_in: int, fan_out: int) -> float:
        return 1 / (fan_out if self.counts == "output" else fan_in)


@dataclass(frozen=True)
class UniformByFanIn(Initialiser):
    """torch's own default for linear layers: weights and biases uniform in ±1/√fan_in.

    yu2019 does not say how its last layer starts; Table 4's weight decay before training implies this (±1/8).
    ``biases=False`` starts biases at zero, as the public Torch code for residual networks does.
    """

    biases: bool = True

    def deviation(self, fan_in: int, fan_out: int) -> float:
        return 1 / math.sqrt(3 * fan_in)

    def _draw(self, layer: nn.Linear | nn.Conv1d | nn.Conv2d | nn.Conv3d, generator: torch.Generator) -> None:
        half_width = math.sqrt(3) * self.deviation(*fans(layer))
        if layer.bias is not None:
            layer.bias.zero_()
        for tensor in (layer.weight, layer.bias if self.biases else None):
            if tensor is not None:
                drawn = torch.rand(
                    tensor.shape, generator=generator, device=generator.device, dtype=torch.float64
                )
                tensor.copy_(half_width * (2 * drawn - 1))
