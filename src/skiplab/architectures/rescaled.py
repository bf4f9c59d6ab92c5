"""Fully connected networks of balduzzi2017, whose modules normalise, rectify and then mix (eq 2).

x_0 = W_0 x + b_0 is linear in the input, each of ``depth`` modules carries x_{l−1} to x_l, and the output is
linear in x_depth. N below is nothing, mean-centring or batch normalisation, ρ the ReLU. ``blocks.k`` returns
x_{k+1}, and ``blocks.k.activation`` returns ρ(N(x_k)), which is positive where a unit is active. With equal
seeds plain and residual networks have equal weights and biases.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from skiplab.architectures.expected import rows
from skiplab.architectures.initialisers import He, Initialiser, standard_normal, undrawn
from skiplab.checks import one_of, require, whole_numbers
from skiplab.shapes import Rows

HE_INIT = He()


class MeanCentring(nn.Module):
    """Batch normalisation without its division: x minus the mean of each unit over the batch.

    In training mode the mean is the batch's, and ``running_mean`` moves towards it by ``momentum``, 0.1 as in
    torch's BatchNorm; in evaluation mode the running mean is subtracted. Nothing is learned.
    """

    running_mean: Tensor

    def __init__(self, features: int, *, momentum: float = 0.1, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.features, self.momentum = features, momentum
        self.register_buffer("running_mean", torch.zeros(features, dtype=dtype))

    def forward(self, x: Rows) -> Rows:
        x = rows(x, self.features, flat=True)
        if not self.training:
            return x - self.running_mean
        require(
            len(x) > 1,
            "A batch of one sample is its own mean; pass at least 2 samples or call eval() on the network.",
        )
        mean = x.mean(0)
        with torch.no_grad():
            # In place, as BatchNorm does: functional_call then updates the buffers it was given.
            self.running_mean.mul_(1 - self.momentum).add_(mean.detach(), alpha=self.momentum)
        return x - mean

    def extra_repr(self) -> str:
        return f"{self.features}, momentum={self.momentum}"


def _nothing(width: int, *, dtype: torch.dtype) -> nn.Module:
    return nn.Identity()


NORMALISATIONS: dict[str, Callable[..., nn.Module]] = {
    "none": _nothing,
    "centre": MeanCentring,
    "batch": nn.BatchNorm1d,
}


class RescaledModule(nn.Module):
    """One module, x ↦ carry · x + branch · (W ρ(N(x)) + b); nothing is carried where carry is 0."""

    def __init__(
        self, width: int, *, carry: float, branch: float, normalisation: str, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.carry, self.branch = carry, branch
        self.norm = NORMALISATIONS[normalisation](width, dtype=dtype)
        self.activation = nn.ReLU()
        self.linear = undrawn(nn.Linear, width, width, dtype=dtype)

    def forward(self, x: Rows) -> Rows:
        field = self.branch * self.linear(self.activation(self.norm(x)))
        return field if self.carry == 0 else self.carry * x + field

    def extra_repr(self) -> str:
        return f"carry={self.carry}, branch={self.branch}"


class EqualWidthNet(nn.Module):
    """A linear map to ``width`` units, ``depth`` modules that keep the width, and a linear output.

    Biases of the first map and of the modules' ``linear`` are N(0, bias_std²), drawn after all weights; the
    output's bias is 0. ``flat`` says that the modules need inputs (batch, features).
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        module: Callable[[], nn.Module],
        *,
        generator: torch.Generator,
        init: Initialiser,
        bias_std: float,
        flat: bool,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        require(
            0 <= bias_std < math.inf, f"bias_std is {bias_std}, but must be a finite number of at least 0."
        )
        self.inputs, self.width, self.depth, self.outputs = inputs, width, depth, outputs
        self.flat = flat
        self.first = undrawn(nn.Linear, inputs, width, dtype=dtype)
        self.blocks = nn.ModuleList(module() for _ in range(depth))
        self.output = undrawn(nn.Linear, width, outputs, dtype=dtype)
        self.block_names = tuple(f"blocks.{k}" for k in range(depth))
        init.apply(self, generator)
        if bias_std > 0:
            with torch.no_grad():
                for linear in (self.first, *(block.get_submodule("linear") for block in self.blocks)):
                    assert isinstance(linear, nn.Linear)
                    linear.bias.copy_(bias_std * standard_normal((width,), generator))

    def forward(self, x: Rows) -> Rows:
        x = self.first(rows(x, self.inputs, flat=self.flat))
        for block in self.blocks:
            x = block(x)
        return self.output(x)


class RescaledNet(EqualWidthNet):
    """With skips balduzzi2017 eq 2, x_l = α(x_{l−1} + β(W_l ρ(N(x_{l−1})) + b_l)); without, feedforward.

    The feedforward network is x_l = W_l ρ(N(x_{l−1})) + b_l and has neither α nor β. ``normalisation`` is
    "none", "centre" (means only) or "batch". Eq 2 has no biases; figure 1 draws them with ``bias_std``.
    """

    def __init__(
        self,
        inputs: int,
        width: int,
        depth: int,
        outputs: int,
        *,
        generator: torch.Generator,
        alpha: float = 1.0,
        beta: float = 1.0,
        skip: bool = True,
        normalisation: str = "none",
        bias_std: float = 0.0,
        init: Initialiser = HE_INIT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        whole_numbers(inputs=inputs, width=width, depth=depth, outputs=outputs)
        one_of("normalisation", normalisation, NORMALISATIONS)
        for name, value in (("alpha", alpha), ("beta", beta)):
            require(math.isfinite(value), f"{name} is {value}, but must be a finite number.")
        require(
            skip or alpha == beta == 1,
            f"alpha is {alpha} and beta is {beta}, but they rescale a skip and its branch; leave both at 1 "
            f"where skip is False.",
        )
        carry, branch = (alpha, alpha * beta) if skip else (0.0, 1.0)

        def module() -> nn.Module:
            return RescaledModule(width, carry=carry, branch=branch, normalisation=normalisation, dtype=dtype)

        super().__init__(
            inputs,
            width,
            depth,
            outputs,
            module,
            generator=generator,
            init=init,
            bias_std=bias_std,
            flat=normalisation != "none",
            dtype=dtype,
        )
        self.alpha, self.beta, self.skip, self.normalisation = alpha, beta, skip, normalisation
