"""The toy networks of orhan2017 eqs 1–4: two units a layer, weights of ±1, one linear output.

x_1 is the input and x_{depth+1} the last hidden layer; the output is w · x_{depth+1}, without bias or skip.
Each equation divides by the connections a unit receives, two being the plain network's number. With five
hidden layers there are 5·4 + 2 = 22 weights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skiplab.architectures.expected import rows
from skiplab.architectures.initialisers import undrawn
from skiplab.checks import require, whole_numbers
from skiplab.shapes import Rows

WIDTH = 2


class ToyLayer(nn.Module):
    """2 / (2 + incoming skips) · [ReLU(W x + b) + skips], b being fixed."""

    bias: Tensor | None

    def __init__(self, incoming: int, bias: Tensor | None, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear = undrawn(nn.Linear, WIDTH, WIDTH, bias=False, dtype=dtype)
        self.register_buffer("bias", bias)
        self.factor = WIDTH / (WIDTH + incoming)

    def forward(self, x: Rows, skips: Rows | None = None) -> Rows:
        field = self.linear(x)
        activity = torch.relu(field if self.bias is None else field + self.bias)
        return activity if skips is None else self.factor * (activity + skips)


class ToyPlainNet(nn.Module):
    """No skips, orhan2017 eq 1: x_{l+1} = f(W_l x_l).

    All weights start at +1; ``set_signs`` sets them. ``biases``, (depth, 2) and fixed, are for figure S1.
    """

    def __init__(
        self, depth: int = 5, biases: Tensor | None = None, dtype: torch.dtype = torch.float64
    ) -> None:
        super().__init__()
        whole_numbers(depth=depth)
        fixed: list[Tensor | None] = [None] * depth
        if biases is not None:
            require(
                tuple(biases.shape) == (depth, WIDTH),
                f"biases have shape {tuple(biases.shape)}, but must have ({depth}, {WIDTH}).",
            )
            fixed = [bias.clone() for bias in biases.detach().to(dtype)]
        self.hidden = nn.ModuleList(
            ToyLayer(self.incoming(ell), bias, dtype) for ell, bias in enumerate(fixed, start=1)
        )
        self.output = undrawn(nn.Linear, WIDTH, 1, bias=False, dtype=dtype)
        self.block_names = tuple(f"hidden.{k}" for k in range(depth))
        self.set_signs(torch.ones(self.weight_count))

    @property
    def weight_count(self) -> int:
        """The number of binary weights, 4 · depth + 2."""
        return WIDTH * WIDTH * len(self.hidden) + WIDTH

    def set_signs(self, signs: Tensor) -> None:
        """Set every weight to its sign, +1 or −1, in the order W_1 … W_depth, each row by row, then w."""
        count = self.weight_count
        require(
            tuple(signs.shape) == (count,),
            f"signs have shape {tuple(signs.shape)}, but must have ({count},), one for each weight.",
        )
        values = sorted(set(signs.tolist()))
        require(
            set(values) <= {-1, 1},
            f"signs hold {values[:4]}, but must be −1 and 1; from a bit that means −1 take 1 − 2·bit.",
        )
        weights = list(self.parameters())
        with torch.no_grad():
            for weight, part in zip(weights, signs.split([w.numel() for w in weights]), strict=True):
                weight.copy_(part.reshape(weight.shape))

    @staticmethod
    def incoming(ell: int) -> int:
        """Return how many skip connections a unit of x_{l+1} receives."""
        return 0

    @staticmethod
    def skips(activities: list[Rows]) -> Rows | None:
        """Return what the skips bring to x_{l+1} from the activities x_1 … x_l."""
        return None

    def forward(self, x: Rows) -> Rows:
        activities = [rows(x, WIDTH)]
        for layer in self.hidden:
            activities.append(layer(activities[-1], self.skips(activities)))
        return self.output(activities[-1])


class ToyResidualNet(ToyPlainNet):
    """Identity skips between adjacent layers, orhan2017 eq 2: x_{l+1} = 2/3 [f(W_l x_l) + x_l]."""

    @staticmethod
    def incoming(ell: int) -> int:
        return 1

    @staticmethod
    def skips(activities: list[Rows]) -> Rows | None:
        return activities[-1]


class ToyHyperResidualNet(ToyPlainNet):
    """Identity skips from all earlier layers, eq 3: x_{l+1} = 2/(l+2) [f(W_l x_l) + x_l + … + x_1]."""

    @staticmethod
    def incoming(ell: int) -> int:
        return ell

    @staticmethod
    def skips(activities: list[Rows]) -> Rows | None:
        return torch.stack(activities).sum(0)


class ToyPathResidualNet(ToyPlainNet):
    """A skip beside every connection, orhan2017 eq 4: x_{l+1} = 2/4 [f(W_l x_l) + 1 x_l], 1 all ones."""

    @staticmethod
    def incoming(ell: int) -> int:
        return WIDTH

    @staticmethod
    def skips(activities: list[Rows]) -> Rows | None:
        return activities[-1].sum(-1, keepdim=True)


TOY_NETS: dict[str, type[ToyPlainNet]] = {
    "plain": ToyPlainNet,
    "residual": ToyResidualNet,
    "hyper-residual": ToyHyperResidualNet,
    "path-residual": ToyPathResidualNet,
}
