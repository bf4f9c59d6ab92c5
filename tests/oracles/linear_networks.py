"""Linear networks as torch modules whose energy and gradient come from autograd."""

from __future__ import annotations

import numpy as np
import torch

from skiplab.architectures import linear
from skiplab.randomness import torch_generator

CLASSES = {
    "plain": linear.PlainLinearNet,
    "residual": linear.ResidualLinearNet,
    "hyper-residual": linear.HyperResidualLinearNet,
    "dense-residual": linear.DenseResidualLinearNet,
}


class LinearModule:
    """A network on white inputs with a correlation matrix (outputs, inputs), as functions of its weights."""

    def __init__(self, architecture: str, correlation: np.ndarray, sizes: tuple[int, ...]) -> None:
        self.net = CLASSES[architecture](sizes, generator=torch_generator(0), dtype=torch.float64)
        self.target = torch.from_numpy(correlation)
        self.shapes = [tuple(parameter.shape) for parameter in self.net.parameters()]

    def loss(self, weights: tuple[np.ndarray, ...]) -> torch.Tensor:
        """½|Σ − M|², M the network's own matrix."""
        with torch.no_grad():
            for parameter, weight in zip(self.net.parameters(), weights, strict=True):
                parameter.copy_(torch.as_tensor(weight))
        return 0.5 * ((self.target - self.net.matrix()) ** 2).sum()

    def energy(self, weights: tuple[np.ndarray, ...]) -> float:
        """The loss as a number."""
        return float(self.loss(weights).detach())

    def velocity(self, weights: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
        """−∂E/∂W_l for every layer."""
        slopes = torch.autograd.grad(self.loss(weights), list(self.net.parameters()))
        return tuple(-slope.numpy() for slope in slopes)
