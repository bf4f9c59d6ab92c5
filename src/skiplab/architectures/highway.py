"""Highway networks of balduzzi2017 section 3.4: learned gates, and the analysed variant with scalars.

x_0 = W_0 x + b_0 is linear in the input, ``blocks.k`` returns x_{k+1}, the output is linear in x_depth.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from skiplab.architectures.initialisers import Initialiser, undrawn
from skiplab.architectures.rescaled import HE_INIT, NORMALISATIONS, EqualWidthNet, RescaledModule
from skiplab.checks import one_of, require, whole_numbers
from skiplab.shapes import Rows


class ScalarHighwayNet(EqualWidthNet):
    """Scalar gates, balduzzi2017 section 3.4: x_l = γ₁ x_{l−1} + γ₂ (W_l ρ(x_{l−1}) + b_l), γ₁² + γ₂² = 1.

    ``gamma`` is γ₁, by default √(1 − 1/depth), for which corollary 1's correlation tends to e^−½ with depth
    instead of 0. It is eq 2 with α = γ₁ and β = γ₂/γ₁. The paper has neither biases nor normalisation here;
    the options are those of RescaledNet.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        *,
        generator: torch.Generator,
        gamma: float | None = None,
        normalisation: str = "none",
        bias_std: float = 0.0,
        init: Initialiser = HE_INIT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        whole_numbers(inputs=inputs, width=width, depth=depth, outputs=outputs)
        one_of("normalisation", normalisation, NORMALISATIONS)
        gamma_1 = math.sqrt(1 - 1 / depth) if gamma is None else gamma
        require(
            0 <= gamma_1 <= 1,
            f"gamma is {gamma}, but must lie between 0 and 1, because γ₁² + γ₂² = 1; √(1 − 1/depth) is usual.",
        )
        gamma_2 = math.sqrt(1 - gamma_1**2)

        def module() -> nn.Module:
            return RescaledModule(
                width, carry=gamma_1, branch=gamma_2, normalisation=normalisation, dtype=dtype
            )

        super().__init__(
            inputs,
            width,
            depth,
            outputs,
            module,
            dtype=dtype,
            flat=normalisation != "none",
            bias_std=bias_std,
            init=init,
            generator=generator,
        )
        self.gamma_1, self.gamma_2 = gamma_1, gamma_2


class HighwayModule(nn.Module):
    """One highway layer, x ↦ (1 − T(x)) · x + T(x) · ρ(W x + b) with the gate T(x) = sigmoid(W_T x + b_T)."""

    def __init__(self, width: int, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear = undrawn(nn.Linear, width, width, dtype=dtype)
        self.gate = undrawn(nn.Linear, width, width, dtype=dtype)
        self.activation = nn.ReLU()

    def forward(self, x: Rows) -> Rows:
        opened = torch.sigmoid(self.gate(x))
        return (1 - opened) * x + opened * self.activation(self.linear(x))


class HighwayNet(EqualWidthNet):
    """Learned gates, Srivastava et al. (2015): x_l = (1 − T(x)) · x + T(x) · ρ(W_l x + b_l) at x = x_{l−1}.

    Every bias b_T of the gates T(x) = sigmoid(W_T x + b_T) starts at ``gate_bias``; at −1, the largest that
    Srivastava et al. advise, a gate passes on about three quarters of x. ``init`` draws W and W_T alike (ours).
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        *,
        generator: torch.Generator,
        gate_bias: float = -1.0,
        bias_std: float = 0.0,
        init: Initialiser = HE_INIT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        whole_numbers(inputs=inputs, width=width, depth=depth, outputs=outputs)
        require(math.isfinite(gate_bias), f"gate_bias is {gate_bias}, but must be a finite number.")
        super().__init__(
            inputs,
            width,
            depth,
            outputs,
            lambda: HighwayModule(width, dtype=dtype),
            generator=generator,
            init=init,
            bias_std=bias_std,
            flat=False,
            dtype=dtype,
        )
        self.gate_bias = gate_bias
        with torch.no_grad():
            for block in self.blocks:
                assert isinstance(block, HighwayModule)
                block.gate.bias.fill_(gate_bias)
