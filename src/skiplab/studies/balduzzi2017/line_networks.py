"""The laboratory of figures 1 to 4: random rectifier networks seen on a grid of 256 points of [−2, 2].

A network is eq. 2 of the paper, x_l = x_{l−1} + β W_l ρ(N(x_{l−1})), or the same without the skip ("plain"), where N
is nothing, mean-centring or batch normalisation over the whole grid. Depth counts its rectifier layers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from skiplab.ensembles import Ensemble

POINTS = 256  # section 1.1
REACH = 2.0  # section 1.1: inputs between −2 and 2
BIAS = 1.0  # ours, see errata: the text's deviation, 1/√200, gives a gradient that is flat but for |x| < .18
_AFTER = {"none": "", "centre": "+centring", "batch": "+BN"}


@dataclass(frozen=True)
class Network:
    """An architecture at initialisation; ``ones`` makes the first weights v = (1, …, 1), as in figure 1a."""

    depth: int
    width: int = 200
    skip: bool = False
    beta: float = 1.0
    normalisation: str = "none"
    bias_std: float = 0.0
    ones: bool = False

    @property
    def name(self) -> str:
        """Its kind, depth left out: "plain+centring", "residual β=0.1+BN"."""
        return (f"residual β={self.beta:g}" if self.skip else "plain") + _AFTER[self.normalisation]

    @property
    def label(self) -> str:
        """Everything that tells it from another: the name of its random stream."""
        first = ", v = 1" if self.ones else ""
        return f"{self.name}, {self.depth}×{self.width}, biases {self.bias_std:.3g}{first}"


def shallow(width: int, bias_std: float = BIAS) -> Network:
    """The network of figure 1a: one hidden layer, f(x) = wᵀρ(x v − b) with v = (1, …, 1)."""
    return Network(1, width, bias_std=bias_std, ones=True)


def plain(depth: int, width: int, normalisation: str = "none", bias_std: float | None = None) -> Network:
    """A feedforward network; biases are ours where nothing is centred and none where they would cancel."""
    if bias_std is None:
        bias_std = BIAS if normalisation == "none" else 0.0
    return Network(depth, width, normalisation=normalisation, bias_std=bias_std)


def residual(depth: int, width: int, beta: float, normalisation: str = "batch") -> Network:
    """A residual network of eq. 2 with α = 1."""
    return replace(plain(depth, width, normalisation), skip=True, beta=beta)


def grid(points: int = POINTS) -> torch.Tensor:
    """The inputs (points, 1) of eq. 1."""
    import torch

    return torch.linspace(-REACH, REACH, points)[:, None]


def build(network: Network, seed: int) -> torch.nn.Module:
    """Draw the network of a seed; networks of different kinds or depths share no number."""
    import torch

    from skiplab.architectures.rescaled import RescaledNet
    from skiplab.randomness import torch_generator

    drawn = RescaledNet(
        1,
        network.width,
        network.depth,
        1,
        generator=torch_generator(seed, "balduzzi2017", network.label),
        beta=network.beta,
        skip=network.skip,
        normalisation=network.normalisation,
        bias_std=network.bias_std,
    )
    if network.ones:
        with torch.no_grad():
            drawn.first.weight.fill_(1.0)
    return drawn


def ensemble(network: Network, seeds: Sequence[int], device: str = "cpu") -> Ensemble:
    """The networks of several seeds as one computation."""
    from skiplab.ensembles import Ensemble

    return Ensemble.of([build(network, seed) for seed in seeds], device=device)
