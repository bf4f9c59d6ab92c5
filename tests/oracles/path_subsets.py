"""Paths of a BlockToy one by one: every subset of its blocks, with gates and deviations as the network has them.

Layer by layer in plain matrix algebra, sharing nothing with ``skiplab.measurements.path_depth``. A path takes some
blocks' branches and passes the others by. It starts at the input, or at a block that adds a shift.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import torch
from torch import Tensor, nn

from skiplab.architectures.path_toys import BlockToy, ScalarBatchNorm

EPS = 1e-5


def path_parts(net: BlockToy, x: Tensor, *, live: bool = False) -> Tensor:
    """What paths of each length bring to the output, (lengths, samples, classes); statistics are the batch's.

    Length counts blocks, the first included. ``live`` keeps gradients of the linear maps, not of gates.
    """
    branches, shifts = _linearised(net, x, live)
    count = len(branches)
    total = x.new_zeros((count + 1, len(x), net.output.out_features))
    weight = net.output.weight if live else net.output.weight.detach()
    bias = net.output.bias if live else net.output.bias.detach()
    total = total + torch.cat([bias.expand(1, len(x), -1), torch.zeros_like(total[1:])])

    def carry(start: Tensor, later: range, length: int) -> None:
        nonlocal total
        for size in range(len(later) + 1):
            for subset in itertools.combinations(later, size):
                h = start
                for place in subset:
                    h = branches[place](h)
                added = torch.zeros_like(total)
                added[length + size] = h @ weight.T
                total = total + added

    carry(branches[0](x), range(1, count), 1)
    for place, shift in enumerate(shifts):
        carry(shift, range(place + 1, count), 1)
    return total


def _linearised(
    net: BlockToy, x: Tensor, live: bool
) -> tuple[list[Callable[[Tensor], Tensor]], list[Tensor]]:
    """For every block the linear map of its branch, and what it adds of its own."""
    branches, shifts = [], []
    h = x
    for block in net.blocks:
        weight = block.linear.weight if live else block.linear.weight.detach()
        scale, shift = _affine(block.norm, live)
        with torch.no_grad():
            field = h @ weight.T
            centred = field - field.mean(0)
            if block.order == "before":
                deviation = (field.var(0, unbiased=False) + EPS).sqrt()
                gate = (centred / deviation * scale + shift > 0).to(x)
            else:
                gate = (field > 0).to(x)
                active = field * gate
                deviation = (active.var(0, unbiased=False) + EPS).sqrt()

        def branch(h, weight=weight, scale=scale, gate=gate, deviation=deviation, order=block.order):
            field = h @ weight.T
            if order is None:
                return gate * field
            if order == "before":
                return gate * ((field - field.mean(0)) / deviation * scale)
            active = gate * field
            return (active - active.mean(0)) / deviation * scale

        own = torch.zeros_like(h[:, :1]).expand(-1, len(weight)) + shift
        if block.order == "before":
            own = gate * own
        branches.append(branch)
        shifts.append(own)
        with torch.no_grad():
            h = branch(h) + own + (h if block.skip else 0)
    return branches, shifts


def _affine(norm: nn.Module, live: bool) -> tuple[Tensor, Tensor]:
    if isinstance(norm, nn.BatchNorm1d | ScalarBatchNorm):
        scale, shift = norm.weight, norm.bias
        return (scale, shift) if live else (scale.detach(), shift.detach())
    return torch.ones(()), torch.zeros(())
