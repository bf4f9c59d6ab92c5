"""Data that nobody prepared: changes of a network's batches, each of a size that the seed draws.

``spoil(change, network, seed)`` returns the same network with changed batches. Which networks a change keeps from
training and which it does not was found by training them (``check_healthy``): the lists have both.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import torch
from cases.networks import Network
from torch import Tensor

from skiplab.randomness import torch_generator

OFFSETS, FACTORS, SCALES = (30.0, 100.0), (300.0, 1000.0), (255.0, 1000.0)
# By change: the finding that names it, at which place.
ACCEPTED = {
    "off-centre-inputs": "the input",
    "unequal-inputs": "the input",
    "off-centre-targets": "the targets",
}


def spoil(change: str, network: Network, seed: int) -> Network:
    """The network with its data changed."""
    stream = torch_generator(seed, "cases", "spoiling", change)
    inputs = torch.cat([batch[0] for batch in network.batches])
    targets = torch.cat([batch[1] for batch in network.batches])
    large = int(torch.randint(2, (), generator=stream))
    unchanged = (1.0, 0.0)
    how: dict[str, tuple[Any, Any]] = {
        "off-centre-inputs": ((1.0, OFFSETS[large] * inputs.std()), unchanged),
        "scaled-inputs": ((SCALES[large], 0.0), unchanged),
    }
    if change == "unequal-inputs":
        how[change] = ((_one_wide_column(inputs, FACTORS[large], stream), 0.0), unchanged)
    elif targets.is_floating_point():
        how["off-centre-targets"] = (unchanged, (1.0, OFFSETS[large] * targets.std()))
        how["scaled-targets"] = (unchanged, (SCALES[large], 0.0))
    (factor, shift), (target_factor, target_shift) = how[change]

    def changed(batch: Any) -> Any:
        given, target = batch
        moved = (target_factor, target_shift) != unchanged
        return given * factor + shift, target * target_factor + target_shift if moved else target

    return dataclasses.replace(network, batches=tuple(map(changed, network.batches)))


def _one_wide_column(inputs: Tensor, factor: float, stream: torch.Generator) -> Tensor:
    """Factors by column, one of them large: of a column that varies at least as much as half of them do."""
    spread = inputs.flatten(0, -2).std(0)
    varied = (spread >= spread.median()).nonzero().flatten()
    factors = torch.ones_like(spread)
    factors[varied[torch.randint(len(varied), (), generator=stream)]] = factor
    return factors
