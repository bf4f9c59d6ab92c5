"""What the products of the kernels take: numbers in one type, or in two parts of a smaller one."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Arithmetic:
    """The type of what enters products, and in how many parts of that type a number comes.

    Two parts of bfloat16 have 16 binary places, six more than tf32, and their products are exact in float32.
    """

    dtype: torch.dtype
    parts: int

    @property
    def itemsize(self) -> int:
        """Bytes of a number in all its parts."""
        return self.parts * self.dtype.itemsize

    def parts_of(self, numbers: Tensor) -> Tensor:
        """Numbers in their parts, (parts, …): the nearest of the type, then the nearest to what that leaves.

        >>> Arithmetic(torch.bfloat16, 2).parts_of(torch.tensor([1 + 2**-12])).tolist()
        [[1.0], [0.000244140625]]
        """
        first = numbers.to(self.dtype)
        if self.parts == 1:
            return first.unsqueeze(0).contiguous()
        return torch.stack([first, (numbers - first.to(numbers.dtype)).to(self.dtype)])


def arithmetic_of(mixed: bool, dtype: torch.dtype) -> Arithmetic:
    """The arithmetic of networks of a type, in mixed precision or not; float64 (tests) is left as it is."""
    if dtype != torch.float32:
        return Arithmetic(dtype, 1)
    return Arithmetic(torch.bfloat16, 1 if mixed else 2)
