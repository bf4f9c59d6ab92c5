"""Which changes of its weights leave the function of a recurrent network as it is (orhan2017, section 2.5).

    h_t = f(W h_{t−1} + U x_t + b),    y_t = V h_t,    t = 1 … T

Unfolded in time it is a feedforward network of T layers with one W for all. The paper says that permuting units keeps
the function only if W is symmetric, and that no rescaling does. Renaming the units at all times,

    W → P W Pᵀ,  U → P U,  V → V Pᵀ,  b → P b,  h_0 → P h_0,

keeps it for any W and f; so does, for f linear or the ReLU, giving each unit another unit of measure, P replaced by a
positive diagonal D (and Pᵀ by D⁻¹), D = g·1 among them, which leaves W as it is: U → gU, V → V/g. What weight sharing
does rule out is another permutation or scale at each time, as the unfolded network with untied weights allows.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skiplab.checks import at_least, one_of

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "ReLU": torch.relu,
    "linear": lambda x: x,
}


@dataclass(frozen=True)
class RecurrentNet:
    """One layer of recurrent units with a linear read-out.

    With a first axis of steps W, U, V and the bias may differ from step to step: then it is the unfolded network with
    untied weights.
    """

    W: Tensor
    U: Tensor
    V: Tensor
    bias: Tensor
    start: Tensor
    activation: str

    @property
    def units(self) -> int:
        """Number n of recurrent units."""
        return self.W.shape[-1]

    def outputs(self, inputs: Tensor) -> Tensor:
        """y_1 … y_T for inputs (T, inputs), as (T, outputs)."""
        f, h = ACTIVATIONS[self.activation], self.start
        found = []
        tied = self.W.ndim == 2
        for step, x in enumerate(inputs):
            W, U, V, bias = (w if tied else w[step] for w in (self.W, self.U, self.V, self.bias))
            h = f(W @ h + U @ x + bias)
            found.append(V @ h)
        return torch.stack(found)


def random_net(
    activation: str, units: int, ends: int, generator: torch.Generator, *, symmetric: bool = False
) -> RecurrentNet:
    """Draw a network with ``ends`` inputs and outputs, biases and a start that are not zero; W symmetric if asked."""
    one_of("activation", activation, ACTIVATIONS)
    at_least("units", units, 2)
    at_least("ends", ends, 1)
    normal: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    W = torch.randn(units, units, **normal) / units**0.5
    U, V = torch.randn(units, ends, **normal), torch.randn(ends, units, **normal) / units**0.5
    bias, start = torch.randn(2, units, **normal) / 2
    return RecurrentNet((W + W.T) / 2 if symmetric else W, U, V, bias, start, activation)


def changed_basis(net: RecurrentNet, into: Tensor) -> RecurrentNet:
    """The same network with M h for h: W → M W M⁻¹, U → M U, V → V M⁻¹, b → M b, h_0 → M h_0.

    It is the same function if f(M z) = M f(z): M a permutation for any f, positive and diagonal for ReLU and linear
    units.
    """
    back = torch.linalg.inv(into)
    return RecurrentNet(
        into @ net.W @ back, into @ net.U, net.V @ back, into @ net.bias, into @ net.start, net.activation
    )


def permutation(units: int, generator: torch.Generator) -> Tensor:
    """A random permutation matrix other than the identity."""
    at_least("units", units, 2)
    while True:
        order = torch.randperm(units, generator=generator)
        if not torch.equal(order, torch.arange(units)):
            return torch.eye(units, dtype=torch.float64)[order]


def permuted_rows(net: RecurrentNet, P: Tensor) -> RecurrentNet:
    """What a permutation of one layer does in a feedforward net, W → P W and V → V Pᵀ, with W shared by all steps."""
    return dataclasses.replace(net, W=P @ net.W, U=P @ net.U, V=net.V @ P.T, bias=P @ net.bias)


def rescaled_ends(net: RecurrentNet, scale: float) -> RecurrentNet:
    """U → gU, V → V/g, b → gb, h_0 → g h_0, W as it is."""
    return changed_basis(net, scale * torch.eye(net.units, dtype=torch.float64))


def rescaled_recurrence(net: RecurrentNet, scale: float) -> RecurrentNet:
    """W → gW, V → V/g: the paper's W_k × g, W_l / g with the recurrent matrix of all steps in it."""
    return dataclasses.replace(net, W=scale * net.W, V=net.V / scale)


def untied_permutations(net: RecurrentNet, steps: int, generator: torch.Generator) -> RecurrentNet:
    """Permute units anew at each step, with untied weights: W_t = P_t W P_{t−1}ᵀ, U_t = P_t U, V_t = V P_tᵀ."""
    maps = torch.stack([permutation(net.units, generator) for _ in range(steps)])
    before = torch.cat([torch.eye(net.units, dtype=torch.float64)[None], maps[:-1]])
    return dataclasses.replace(
        net,
        W=maps @ net.W @ before.transpose(1, 2),
        U=maps @ net.U,
        V=net.V @ maps.transpose(1, 2),
        bias=maps @ net.bias,
    )


def relative_change(net: RecurrentNet, other: RecurrentNet, inputs: Tensor) -> float:
    """The largest difference of two networks' outputs, relative to the first's largest output."""
    y = net.outputs(inputs)
    return float((other.outputs(inputs) - y).abs().max() / y.abs().max())


def class_permutations(classes: int, size: int) -> int:
    """Permutations of K·d units that map every class onto a class: K!(d!)^K (discussion of orhan2017)."""
    at_least("classes", classes, 1)
    at_least("size", size, 1)
    return int(math.factorial(classes) * math.factorial(size) ** classes)


def counted_permutations(classes: int, size: int) -> tuple[int, int]:
    """Count by trying every permutation: those that map classes onto classes, and those that map each onto itself."""
    units = classes * size
    onto, itself = 0, 0
    for order in itertools.permutations(range(units)):
        images = [{order[k] // size for k in range(c * size, (c + 1) * size)} for c in range(classes)]
        onto += all(len(image) == 1 for image in images)
        itself += all(image == {c} for c, image in enumerate(images))
    return onto, itself
