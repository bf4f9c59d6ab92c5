"""The slow, obvious versions: one configuration, one neighbour, one step at a time."""

from __future__ import annotations

import numpy as np
import torch

from skiplab.architectures.toy import TOY_NETS, ToyPlainNet


def signs_of(index: int, bits: int) -> list[int]:
    """The weights of a configuration; the most significant bit is the first weight, and 1 means −1."""
    return [-1 if digit == "1" else 1 for digit in format(index, f"0{bits}b")]


def toy_net(architecture: str, depth: int, biases: np.ndarray | None) -> ToyPlainNet:
    """The module that users train."""
    return TOY_NETS[architecture](depth=depth, biases=None if biases is None else torch.from_numpy(biases))


def loss_of(net: ToyPlainNet, signs: list[int], inputs: np.ndarray, targets: np.ndarray) -> float:
    """The mean squared error of one configuration; a sign beyond the net's weights multiplies the output."""
    weights = net.weight_count
    with torch.no_grad():
        net.set_signs(torch.tensor(signs[:weights], dtype=torch.float64))
        output = net(torch.from_numpy(inputs)).squeeze(-1).numpy()
    for sign in signs[weights:]:
        output = sign * output
    return float(np.mean((output - targets) ** 2))


def better_neighbours(losses: list[float], index: int, tolerance: float) -> list[int]:
    """The neighbours with a lower loss, first weight first."""
    bits = len(losses).bit_length() - 1
    neighbours = [index ^ (1 << (bits - 1 - bit)) for bit in range(bits)]
    bar = losses[index] - tolerance * max(1.0, losses[index])
    return [neighbour for neighbour in neighbours if losses[neighbour] < bar]


def walk(losses: list[float], start: int, tolerance: float) -> list[int]:
    """The steepest walk from a configuration to a local minimum, both ends included."""
    path = [start]
    while better := better_neighbours(losses, path[-1], tolerance):
        slack = tolerance * max(1.0, losses[path[-1]])
        lowest = min(losses[neighbour] for neighbour in better)
        path.append(next(neighbour for neighbour in better if losses[neighbour] <= lowest + slack))
    return path
