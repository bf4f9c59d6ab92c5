"""What a network's training step has to compute and to move, counted on one network and one batch.

Operations are those of the matrix products and convolutions that autograd runs for it. Of memory traffic the least
is counted that any program needs which keeps no layer's activities in a cache: per step every parameter is read by
both passes, its gradient written and read, it and Adam's two moments read and written (10 numbers per parameter), and
what autograd keeps for the backward pass is written once and read once. Numbers count as they are stored, 4 bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from skiplab.benchmarks.harness import Work

if TYPE_CHECKING:
    from torch import Tensor, nn

NUMBERS_PER_PARAMETER = 10


def training_work(
    network: nn.Module,
    inputs: Tensor,
    labels: Tensor,
    *,
    steps: float,
    networks: int,
    unit: str,
    units: float,
) -> Work:
    """The work of so many steps of so many networks like this one on batches like this one, on the meta device."""
    import torch.nn.functional as F
    from torch.utils.flop_counter import FlopCounterMode

    from skiplab.training.memory import kept_bytes, on_meta

    network, inputs, labels = on_meta(network), inputs.to("meta"), labels.to("meta")
    with FlopCounterMode(display=False) as counter:
        F.cross_entropy(network(inputs), labels).backward()
    parameters = sum(parameter.numel() for parameter in network.parameters())
    traffic = 4 * NUMBERS_PER_PARAMETER * parameters + 2 * kept_bytes(network, inputs, labels)
    whole = steps * networks
    return Work(whole * counter.get_total_flops(), whole * traffic, units, unit)
