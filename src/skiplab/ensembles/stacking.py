"""From many modules to the one matrix of an ensemble: drawn and stacked one by one, or in threads side by side."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import type_before_parametrizations

from skiplab.checks import Refused, require
from skiplab.ensembles.layout import Layout

Kind = tuple[dict[str, tuple[type, str]], dict[str, tuple[torch.Size, torch.dtype, bool]]]


class Stack:
    """Room for the states of so many networks like the first: ``rows`` (E, row) and ``fixed``, as an ensemble has."""

    def __init__(self, first: nn.Module, size: int, device: torch.device) -> None:
        self.layout = Layout.of(first)
        require(self.layout.count > 0, "the network has no trainable parameter; set requires_grad on some.")
        kinds = {str(p.dtype) for p in first.parameters() if p.requires_grad}
        require(len(kinds) == 1, f"the parameters mix {' and '.join(sorted(kinds))}; convert them to one.")
        dtype = next(p.dtype for p in first.parameters() if p.requires_grad)
        # Zeros, because the padding at the end of a row is never written.
        self.rows = torch.zeros(size, self.layout.row, dtype=dtype, device=device)
        self._trained = frozenset(self.layout.names)
        self.fixed = {
            name: torch.empty(size, *tensor.shape, dtype=tensor.dtype, device=device)
            for name, tensor in states_of(first).items()
            if name not in self._trained
        }
        self._kind = kind_of(first)
        self.put(0, first)

    def put(self, index: int, module: nn.Module) -> None:
        """Copy a network's parameters and buffers to a place; the network is left alone."""
        if index and kind_of(module) != self._kind:
            raise Refused(f"network {index} differs in kind or shape from network 0; stack only like ones.")
        states, row = states_of(module), self.rows[index]
        if all(states[name].device == row.device for name in self.layout.names):
            self.layout.pack(states, out=row)
        else:
            row.copy_(self.layout.pack(states))
        for name, tensor in self.fixed.items():
            tensor[index].copy_(states[name].detach())


def stacked(modules: Sequence[nn.Module], device: torch.device) -> Stack:
    """The states of modules of one architecture."""
    stack = Stack(modules[0], len(modules), device)
    for index, module in enumerate(modules[1:], 1):
        stack.put(index, module)
    return stack


def drawn(
    draw: Callable[[int], nn.Module], size: int, device: torch.device, threads: int | None = None
) -> tuple[nn.Module, Stack]:
    """The first of so many networks, and the states of all, each drawn by ``draw(index)`` and then forgotten.

    Every network has generators of its own, so that threads change no bit. ``threads`` are, if left out, as many as
    torch computes with on a CPU, one in a trial, and as many as there are cores where a GPU waits for the networks.
    """
    first = draw(0)
    stack = Stack(first, size, device)
    threads = threads or (torch.get_num_threads() if device.type == "cpu" else _cores())
    if threads == 1:
        for index in range(1, size):
            stack.put(index, draw(index))
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(lambda index: stack.put(index, draw(index)), range(1, size)))
    return first, stack


def states_of(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name; tied ones are there once."""
    return dict((*module.named_parameters(), *module.named_buffers()))


def kind_of(module: nn.Module) -> Kind:
    """What modules have alike if one of them can compute with the states of the other."""
    # Classes of all parts and what they say of themselves too: ReLU and tanh networks have equal shapes, and so have
    # convolutions of other strides or skips of other strengths, but one skeleton computes one of them.
    parts = {
        name: (type_before_parametrizations(part), part.extra_repr()) for name, part in module.named_modules()
    }
    return parts, {
        name: (tensor.shape, tensor.dtype, tensor.requires_grad) for name, tensor in states_of(module).items()
    }


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
