"""First derivatives as notes 1–3 print them, against automatic differentiation; and a single weight that is zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction.trial import Bench, trial
from skiplab.studies.orhan2017.notes.trials import SHAPES, Table

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import Tensor

DEPTH = 4  # of note 1's networks: weight matrices, and as many layers of units above the input
ACTIVATIONS = ("tanh", "ReLU")


@dataclass(frozen=True)
class PrintedDerivatives:
    """Which random networks, the width of note 1's and the number of factors of note 3's."""

    seeds: tuple[int, ...]
    width: int = 4
    depth: int = 4


@trial("orhan2017/printed-derivatives", version=1)
def derivatives(settings: PrintedDerivatives, bench: Bench) -> pd.DataFrame:
    """How far eqs 27, 28 and 35 are from automatic derivatives, relative to the largest derivative.

    ``smallest`` is the smallest |eigenvalue| of the plain Hessian of eq 10 where one b_i^α is zero, relative to the
    largest. Note 1's networks have ``tanh`` or ReLU units in every layer, the last included, and one sample.
    """
    import torch

    from skiplab.randomness import torch_generator

    table = Table(0)
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        for activation in ACTIVATIONS:
            draw = torch_generator(seed, "eq 27", activation)
            table.add(
                seed, "plain", activation, "generic", {"eq 27": _eq_27(activation, settings.width, draw)}
            )
        for case, (hidden, modes) in SHAPES.items():
            draw = torch_generator(seed, "eq 28", case)
            a, b = torch.randn(2, hidden, modes, generator=draw, dtype=torch.float64) / hidden**0.5
            s = 0.5 + 2.5 * torch.rand(modes, generator=draw, dtype=torch.float64)
            numbers = {"eq 28": _eq_28(a, b, s), "smallest": _smallest_where_one_is_zero(a, b, s)}
            table.add(seed, "plain", case, "generic", numbers)
        draw = torch_generator(seed, "eq 35")
        a = torch.randn(settings.depth, generator=draw, dtype=torch.float64)
        numbers = {"eq 35": _eq_35(a, 3.0)}
        table.add(seed, "residual", f"{settings.depth} factors", "generic", numbers)
    return table.frame()


def _apart(printed: Tensor, exact: Tensor) -> float:
    largest = float(exact.abs().max())
    return float((printed - exact).abs().max()) / (largest or 1.0)  # 0 where all units are silent


def _eq_27(activation: str, width: int, draw: torch.Generator) -> float:
    """−[0 … f′(h_{l+1,i}) x_{l,j} … 0] W_{l+1}ᵀ diag(f′_{l+2}) … W_{L−1}ᵀ diag(f′_L) e for every l, i and j."""
    import torch

    size = (DEPTH, width, width)
    weights = (torch.randn(size, generator=draw, dtype=torch.float64) * (2 / width) ** 0.5).requires_grad_()
    x, y = torch.randn(2, width, generator=draw, dtype=torch.float64)
    f = torch.tanh if activation == "tanh" else torch.relu
    layers, slopes = [x], []
    for weight in weights:
        field = weight @ layers[-1]
        layers.append(f(field))
        slopes.append(1 - layers[-1] ** 2 if activation == "tanh" else (field > 0).double())
    error = y - layers[-1]
    (exact,) = torch.autograd.grad(0.5 * error @ error, weights)
    printed = torch.zeros_like(exact)
    with torch.no_grad():
        for place in range(DEPTH):
            # What stands behind the vector with a single entry; the last layer has nothing but the error there.
            behind = error
            for above in reversed(range(place + 1, DEPTH)):
                behind = weights[above].T @ (slopes[above] * behind)
            for i in range(width):
                for j in range(width):
                    vector = torch.zeros(width, dtype=torch.float64)
                    vector[i] = slopes[place][i] * layers[place][j]
                    printed[place, i, j] = -vector @ behind
        return _apart(printed, exact)


def _energy(a: Tensor, b: Tensor, s: Tensor) -> Tensor:
    """Eq 10 with τ = 1: a and b have a column per mode."""
    import torch

    return 0.5 * ((torch.diag(s) - b.T @ a) ** 2).sum()


def _eq_28(a: Tensor, b: Tensor, s: Tensor) -> float:
    """−(s_α − a^α·b^α) b_i^α + Σ_{β≠α} (a^α·b^β) b_i^β."""
    import torch

    printed = torch.empty_like(a)
    for mode in range(len(s)):
        own = -(s[mode] - a[:, mode] @ b[:, mode]) * b[:, mode]
        others = [(a[:, mode] @ b[:, other]) * b[:, other] for other in range(len(s)) if other != mode]
        printed[:, mode] = own + sum(others)
    return _apart(printed, torch.func.grad(_energy)(a, b, s))


def _smallest_where_one_is_zero(a: Tensor, b: Tensor, s: Tensor) -> float:
    import torch

    zeroed = b.clone()
    zeroed[0, 0] = 0.0
    count = a.numel()

    def energy(both: Tensor) -> Tensor:
        return _energy(both[:count].view_as(a), both[count:].view_as(b), s)

    hessian = torch.func.jacrev(torch.func.grad(energy))(torch.cat([a.flatten(), zeroed.flatten()]))
    spectrum = torch.linalg.eigvalsh(hessian).abs()
    return float(spectrum.min() / spectrum.max())


def _eq_35(a: Tensor, s: float) -> float:
    """−(s − u) Π_{l≠i} (a_l + 1)."""
    import torch

    u = (a + 1).prod()
    others = [torch.cat([a[:i], a[i + 1 :]]).add(1).prod() for i in range(len(a))]
    exact = torch.func.grad(lambda each: 0.5 * (s - (each + 1).prod()) ** 2)(a)
    return _apart(-(s - u) * torch.stack(others), exact)
