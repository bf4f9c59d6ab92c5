"""Memory that is used again: fresh pages cost more than the arithmetic on them.

A product makes the same tensors of some megabytes again and again. Handed back to the system in between, each costs
the zeroing of its pages anew, which took half of the time of a 10 × 32 network's products.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


class Workspace:
    """Sums and products of tensors in memory that is taken back when the last holder lets go.

    A result stays valid until it has been dropped as often as held, or until ``reset``. Without ``reuse`` all results
    are ordinary tensors.
    """

    def __init__(self, *, reuse: bool = True) -> None:
        self._reuse = reuse
        self._free: dict[int, list[Tensor]] = {}
        self._taken: dict[int, Tensor] = {}
        self._holders: dict[int, int] = {}

    def add(self, a: Tensor, b: Tensor, scale: float = 1.0) -> Tensor:
        """a + scale·b."""
        return torch.add(a, b, alpha=scale, out=self._like(a, b))

    def mul(self, a: Tensor, b: Tensor | float) -> Tensor:
        """a·b entry by entry."""
        return torch.mul(a, b, out=self._like(a, b))

    def bmm(self, a: Tensor, b: Tensor) -> Tensor:
        """The products of matrices in two stacks."""
        out = self._take((a.shape[0], a.shape[1], b.shape[2]), a)
        return torch.bmm(a, b) if out is None else torch.bmm(a, b, out=out)

    def empty(self, shape: tuple[int, ...], like: Tensor) -> Tensor:
        """Memory to be written to."""
        out = self._take(shape, like)
        return like.new_empty(shape) if out is None else out

    def hold(self, tensor: Tensor) -> Tensor:
        """Count one more holder of a tensor's memory, if it is ours."""
        place = tensor.untyped_storage().data_ptr()
        if place in self._taken:
            self._holders[place] = self._holders.get(place, 0) + 1
        return tensor

    def drop(self, tensor: Tensor | None) -> None:
        """Count one holder less; the last gives the memory back."""
        if tensor is None:
            return
        place = tensor.untyped_storage().data_ptr()
        if place in self._taken:
            self._holders[place] -= 1
            if self._holders[place] == 0:
                del self._holders[place]
                buffer = self._taken.pop(place)
                self._free.setdefault(buffer.numel(), []).append(buffer)

    def reset(self) -> None:
        """Take everything back."""
        for buffer in self._taken.values():
            self._free.setdefault(buffer.numel(), []).append(buffer)
        self._taken.clear()
        self._holders.clear()

    def _like(self, a: Tensor, b: Tensor | float) -> Tensor | None:
        # Both have the same number of axes; torch.broadcast_shapes takes 40 µs, as long as a small product.
        shape = tuple(map(max, a.shape, b.shape)) if isinstance(b, Tensor) else tuple(a.shape)
        return self._take(shape, a)

    def _take(self, shape: tuple[int, ...], like: Tensor) -> Tensor | None:
        if not self._reuse:
            return None
        count = math.prod(shape)
        free = self._free.get(count)
        buffer = free.pop() if free else like.new_empty(count)
        self._taken[buffer.untyped_storage().data_ptr()] = buffer
        return buffer.view(shape)


class Held(dict[int, Tensor]):
    """Numbered tensors, each held for as long as it is here."""

    def __init__(self, space: Workspace) -> None:
        super().__init__()
        self._space = space

    def __setitem__(self, slot: int, tensor: Tensor) -> None:
        self._space.hold(tensor)
        self.discard(slot)
        super().__setitem__(slot, tensor)

    def discard(self, slot: int) -> None:
        """Let go of a tensor, if it is here."""
        self._space.drop(self.pop(slot, None))
