"""Data that are not centred or scaled: changes of a network's batches, each of a size that the seed draws.

``spoil(change, network, seed)`` returns the same network with changed batches. Which of them keep a network from
training and which do not was found by training (``check_healthy``): about half of each.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from cases.networks import Network
from torch import Tensor

from skiplab.randomness import torch_generator

# By change the sizes between which one is drawn on a logarithmic scale: standard deviations that are added, factors.
SIZES = {
    "off-centre-inputs": (2.0, 100.0),
    "unequal-inputs": (10.0, 1000.0),
    "off-centre-targets": (1.0, 30.0),
    "scaled-inputs": (100.0, 1000.0),
    "scaled-targets": (100.0, 1000.0),
}
# By change: the finding that names it, at which place. Rescalings of these sizes
# are below the limit of the one rule that looks at them, ``wide-targets``, since some of the networks train.
ACCEPTED = {
    "off-centre-inputs": "the input",
    "unequal-inputs": "the input",
    "off-centre-targets": "the targets",
}


def size_of(change: str, seed: int) -> float:
    """The size of a change, in two digits."""
    low, high = (math.log(size) for size in SIZES[change])
    drawn = float(torch.rand((), generator=torch_generator(seed, "cases", "spoiling", "size", change)))
    return float(f"{math.exp(low + drawn * (high - low)):.2g}")


def spoil(change: str, network: Network, seed: int) -> Network:
    """The network with its data changed."""
    inputs = torch.cat([batch[0] for batch in network.batches])
    targets = torch.cat([batch[1] for batch in network.batches])
    size, unchanged = size_of(change, seed), (1.0, 0.0)
    how: dict[str, tuple[Any, Any]] = {
        "off-centre-inputs": ((1.0, size * inputs.std()), unchanged),
        "scaled-inputs": ((size, 0.0), unchanged),
    }
    if change == "unequal-inputs":
        how[change] = ((_one_wide_column(inputs, size, seed), 0.0), unchanged)
    elif targets.is_floating_point():
        how["off-centre-targets"] = (unchanged, (1.0, size * targets.std()))
        how["scaled-targets"] = (unchanged, (size, 0.0))
    (factor, shift), (target_factor, target_shift) = how[change]

    def changed(batch: Any) -> Any:
        given, target = batch
        moved = (target_factor, target_shift) != unchanged
        return given * factor + shift, target * target_factor + target_shift if moved else target

    return dataclasses.replace(network, batches=tuple(map(changed, network.batches)))


def _one_wide_column(inputs: Tensor, factor: float, seed: int) -> Tensor:
    """Factors by column, one of them large: of a column that varies at least as much as half of them do."""
    spread = inputs.flatten(0, -2).std(0)
    varied = (spread >= spread.median()).nonzero().flatten()
    factors = torch.ones_like(spread)
    stream = torch_generator(seed, "cases", "spoiling", "column")
    factors[varied[torch.randint(len(varied), (), generator=stream)]] = factor
    return factors
