"""Shapes that signatures name: a batch of rows, a batch of images, a square matrix.

The names in quotes are axes; ``*batch`` stands for any number of leading axes, none included.
"""

from __future__ import annotations

from typing import TypeAlias

from jaxtyping import Float
from torch import Tensor

Rows: TypeAlias = Float[Tensor, "*batch features"]
Images: TypeAlias = Float[Tensor, "batch channels height width"]
SquareMatrix: TypeAlias = Float[Tensor, "n n"]
