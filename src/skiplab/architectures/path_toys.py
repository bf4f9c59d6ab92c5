"""The small residual networks of littwin2017 (eqs 8, 22; appendix C): a first layer without skip, then skipped ones.

N_1 = f_1(x) and N_l = f_l(N_{l−1}) + N_{l−1}, read out linearly. A block is f_l(h) = R(W_l h), R being the ReLU;
with ``norm="after"`` λ_l BN(R(W_l h)) + shift, as eq 22 has it; with ``norm="before"`` R(BN(W_l h)). Hidden layers
have no biases, BN's shifts start at 0 and so does the output's bias (ours). With equal seeds networks with and
without normalisation have equal weights.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from skiplab.architectures.expected import rows
from skiplab.architectures.initialisers import He, undrawn
from skiplab.checks import one_of, require, whole_numbers
from skiplab.shapes import Rows

NORMS = ("after", "before")
UNIFORM = "uniform"  # λ ~ U(0, 1), as Lua Torch drew it


class ScalarBatchNorm(nn.Module):
    """Batch normalisation with one scale λ per layer, ``weight`` (1,), as eq 22 writes it, and a shift per unit."""

    def __init__(self, width: int, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(width, affine=False, dtype=dtype)
        self.weight = nn.Parameter(torch.ones(1, dtype=dtype))
        self.bias = nn.Parameter(torch.zeros(width, dtype=dtype))

    def forward(self, x: Rows) -> Rows:
        return self.weight * self.norm(x) + self.bias


class ToyBlock(nn.Module):
    """One layer of units, f(h) or f(h) + h; ``norm`` is None, "after" or "before" the ReLU."""

    def __init__(
        self,
        inputs: int,
        width: int,
        *,
        skip: bool,
        norm: str | None,
        scalar_scale: bool,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        self.skip, self.order = skip, norm
        self.linear = undrawn(nn.Linear, inputs, width, bias=False, dtype=dtype)
        self.activation = nn.ReLU()
        self.norm: nn.Module = nn.Identity()
        if norm is not None:
            self.norm = (
                ScalarBatchNorm(width, dtype=dtype) if scalar_scale else nn.BatchNorm1d(width, dtype=dtype)
            )

    def forward(self, x: Rows) -> Rows:
        parts = (self.norm, self.activation) if self.order == "before" else (self.activation, self.norm)
        field = parts[1](parts[0](self.linear(x)))
        return field + x if self.skip else field

    def extra_repr(self) -> str:
        return f"skip={self.skip}, norm={self.order}"


class BlockToy(nn.Module):
    """``blocks`` layers of ``width`` units, the first without skip, and a linear output (appendix C: 10 × 20).

    ``extra`` adds one more skipped layer, 1 + 10 in place of 1 + 9, since the paper does not say which of its 10
    blocks is the first. Weights are N(0, gain²/n), n a layer's inputs, the output's N(0, 1/n). ``scale_init`` is what
    every λ starts from: a number, or "uniform". ``scalar_scale`` has one λ per layer.
    """

    def __init__(
        self,
        inputs: int = 50,
        classes: int = 10,
        width: int = 20,
        blocks: int = 10,
        *,
        generator: torch.Generator,
        norm: str | None = None,
        scalar_scale: bool = False,
        scale_init: float | str = 1.0,
        gain: float = 1.0,
        extra: bool = False,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        whole_numbers(inputs=inputs, classes=classes, width=width, blocks=blocks)
        if norm is not None:
            one_of("norm", norm, NORMS)
        require(
            norm is not None or not (scalar_scale or scale_init != 1.0),
            "norm is None, so there are no scales to choose; leave scalar_scale and scale_init, or give a norm.",
        )
        if isinstance(scale_init, str):
            one_of("scale_init", scale_init, (UNIFORM,))
        self.inputs, self.width, self.norm = inputs, width, norm
        sizes = [(inputs, False), *[(width, True)] * (blocks - 1 + extra)]
        self.blocks = nn.ModuleList(
            ToyBlock(seen, width, skip=skip, norm=norm, scalar_scale=scalar_scale, dtype=dtype)
            for seen, skip in sizes
        )
        self.output = undrawn(nn.Linear, width, classes, dtype=dtype)
        self.block_names = tuple(f"blocks.{k}" for k in range(len(self.blocks)))
        He(gain / math.sqrt(2)).apply(self.blocks, generator)
        He(1 / math.sqrt(2)).apply(self.output, generator)
        with torch.no_grad():
            for scale in self.scales().values():
                if scale_init == UNIFORM:
                    drawn = torch.rand(scale.shape, generator=generator, dtype=torch.float64)
                    scale.copy_(drawn)
                else:
                    scale.fill_(float(scale_init))

    def scales(self) -> dict[str, Tensor]:
        """λ of every block, by the name of its parameter; none without normalisation."""
        found: dict[str, Tensor] = {}
        for name, block in zip(self.block_names, self.blocks, strict=True):
            norm = block.get_submodule("norm")
            if not isinstance(norm, nn.Identity):
                found[f"{name}.norm.weight"] = norm.get_parameter("weight")
        return found

    def forward(self, x: Rows) -> Rows:
        x = rows(x, self.inputs, flat=self.norm is not None)
        for block in self.blocks:
            x = block(x)
        return self.output(x)
