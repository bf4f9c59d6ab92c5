"""How the parameters of one network lie in a row of numbers.

An ensemble keeps all trainable parameters in one matrix, a row a member, so that an optimiser is a few
elementwise operations whatever the architecture. Matrices come first, then vectors (biases, norms), each in
the module's own order: the hidden biases are then one run of columns, which is what bias penalties act on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

# Rows are padded to whole 256-byte lines: batched matrix products on a GPU need aligned members.
ROW_MULTIPLE = 64


@dataclass(frozen=True)
class Layout:
    """Names, shapes and places of the trainable parameters in a row."""

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]

    @staticmethod
    def of(module: nn.Module) -> Layout:
        """Lay out a module's trainable parameters; tied ones are counted once."""
        found = [(name, p.shape) for name, p in module.named_parameters() if p.requires_grad]
        found.sort(key=lambda pair: len(pair[1]) < 2)  # stable: the module's order within each half
        return Layout(tuple(name for name, _ in found), tuple(shape for _, shape in found))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Count of numbers in each parameter."""
        return tuple(math.prod(shape) for shape in self.shapes)

    @property
    def count(self) -> int:
        """Count of trainable numbers in one network."""
        return sum(self.sizes)

    @property
    def row(self) -> int:
        """Length of a row, padding included."""
        return -(-self.count // ROW_MULTIPLE) * ROW_MULTIPLE

    def unpack(self, rows: Tensor) -> dict[str, Tensor]:
        """View rows (…, row) as named parameters (…, *shape); differentiable in one split."""
        padding = [self.row - self.count] if self.row > self.count else []
        parts = rows.split([*self.sizes, *padding], dim=-1)
        lead = rows.shape[:-1]
        named = zip(self.names, parts[: len(self.names)], self.shapes, strict=True)
        return {name: part.view(*lead, *shape) for name, part, shape in named}

    def pack(self, parameters: dict[str, Tensor], out: Tensor | None = None) -> Tensor:
        """Copy one network's named parameters into a row, a new one or ``out``, whose padding is left alone."""
        parts = [parameters[name].detach().reshape(-1) for name in self.names]
        row = torch.zeros(self.row, dtype=parts[0].dtype, device=parts[0].device) if out is None else out
        torch.cat(parts, out=row[: self.count])
        return row

    def columns(self, names: Iterable[str]) -> list[slice]:
        """The columns of the named parameters, neighbours merged into one slice."""
        starts = dict(zip(self.names, torch.tensor((0, *self.sizes)).cumsum(0).tolist(), strict=False))
        sizes = dict(zip(self.names, self.sizes, strict=True))
        merged: list[slice] = []
        for name in sorted(names, key=starts.__getitem__):
            start, stop = int(starts[name]), int(starts[name]) + sizes[name]
            if merged and merged[-1].stop == start:
                merged[-1] = slice(merged[-1].start, stop)
            else:
                merged.append(slice(start, stop))
        return merged
