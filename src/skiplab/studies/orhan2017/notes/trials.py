"""The networks of notes 1–3 at their singular points: exact Hessians and Gauss–Newton matrices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    from torch import Tensor

    from skiplab.curvature.products import HessianProduct
    from skiplab.theory.singular.hessians import SingularPoint

# Inputs and width of note 1's networks: as many outgoing weights as incoming ones, and two more.
ACTIVATIONS = {"tanh": ("tanh", 5, 5), "ReLU": ("relu", 5, 5), "tanh, fewer inputs": ("tanh", 3, 5)}
SHAPES = {"n < m": (3, 5), "n = m": (4, 4), "n > m": (5, 3)}  # hidden units and modes of note 2's
PLAIN_POINTS = ("generic", "a overlaps", "b overlaps", "both overlap", "a is zero")
RESIDUAL_POINTS = (*PLAIN_POINTS, "b + u overlaps")
NETWORKS = ("plain", "residual", "hyper-residual")
COLUMNS = ("draw", "note", "network", "case", "point", "quantity", "x", "value")
ZERO = 1e-12  # relative to the largest; zeros come out below 1e-15, the least of the others above 1e-10
STEPS = (-2.0, -1.0, -0.5, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class SingularNetworks:
    """Which random networks, samples and outputs of note 1's, depth of note 3's, and its values of u/s."""

    seeds: tuple[int, ...]
    samples: int = 200
    outputs: int = 3
    depth: int = 4
    ratios: tuple[float, ...] = (0.25, 0.5, 0.75, 1.0, 1.5)


def product_of(point: SingularPoint, kind: str = "hessian") -> HessianProduct:
    """The curvature of Σ (target − output)², which is 2E, at a point."""
    from torch import nn

    from skiplab.curvature.products import HessianProduct

    batch, twice = (point.inputs, point.targets), nn.MSELoss(reduction="sum")
    return HessianProduct(point.net, batch, criterion=twice, kind=kind, layers=point.names)


def matrix(point: SingularPoint, kind: str) -> Tensor:
    """The exact Hessian or Gauss–Newton matrix of E."""
    return product_of(point, kind).matrix()[0] / 2


def zeros(found: Tensor) -> int:
    """How many eigenvalues are 0 but for rounding."""
    import torch

    spectrum = torch.linalg.eigvalsh(found).abs()
    return int((spectrum <= ZERO * spectrum.max()).sum())


def hessian_numbers(point: SingularPoint) -> tuple[Tensor, dict[str, float]]:
    """The Hessian at a point and what the notes say of it, relative to its largest eigenvalue or entry.

    ``smallest`` |eigenvalue|; ``zeros`` among them; ``rows``: how far the two rows differ that are called identical;
    ``along``: the dᵀHd farthest from 0; ``push`` and ``largest push``: the smallest and largest ‖Hd‖.
    """
    import torch

    H = matrix(point, "hessian")
    spectrum = torch.linalg.eigvalsh(H).abs()
    scale = spectrum.max()
    moved = point.directions @ H
    push = moved.norm(dim=1) / scale
    numbers = {
        "smallest": spectrum.min() / scale,
        "zeros": (spectrum <= ZERO * scale).sum(),
        "rows": (H[point.i_row] - H[point.j_row]).abs().max() / H.abs().max(),
        "along": (moved * point.directions).sum(1).abs().max() / scale,
        "push": push.min(),
        "largest push": push.max(),
    }
    return H, {name: float(value) for name, value in numbers.items()}


def flatness(point: SingularPoint) -> float:
    """The largest |ΔE|/E along any of the predicted directions."""
    import torch

    steps = torch.tensor((0.0, *STEPS), dtype=torch.float64)
    losses = torch.stack([point.loss_along(d, steps) for d in point.directions])
    return float((losses / losses[:, :1] - 1).abs().max())


class Table:
    """Rows of a trial's table, one number each."""

    def __init__(self, note: int) -> None:
        self.note = note
        self.rows: list[tuple[Any, ...]] = []

    def add(
        self, draw: int, network: str, case: str, point: str, numbers: dict[str, float], x: float = 0.0
    ) -> None:
        """Add a row for every number."""
        self.rows += [
            (draw, self.note, network, case, point, name, x, float(value)) for name, value in numbers.items()
        ]

    def frame(self) -> pd.DataFrame:
        """The table."""
        import pandas as pd

        return pd.DataFrame(self.rows, columns=list(COLUMNS))


@trial("orhan2017/singular-multilayer", version=1)
def multilayer(settings: SingularNetworks, bench: Bench) -> pd.DataFrame:
    """Note 1: equal incoming weights in the first of two hidden layers, at random targets and at an optimum.

    ``rows elsewhere`` leaves out the incoming weights of the two units; ``gained`` are zeros of H, ``block gained``
    of Gauss–Newton's block of the outgoing weights, more than in the same network without the overlap. For the
    first draw the rows' difference is kept by weight (x).
    """
    from skiplab.randomness import torch_generator
    from skiplab.theory.singular.hessians import multilayer_overlap

    table = Table(1)
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        for case, (activation, inputs, width) in ACTIVATIONS.items():
            sizes = (inputs, width, settings.outputs)
            at, beside = (
                multilayer_overlap(
                    activation, sizes, settings.samples, torch_generator(seed, "note 1", case), beside=off
                )
                for off in (False, True)
            )
            H, numbers = hessian_numbers(at)
            difference = (H[at.i_row] - H[at.j_row]).abs() / H.abs().max()
            gradient = product_of(at).gradient()[0]
            moved = (at.directions @ gradient).abs().max()  # its entries' differences, over √2
            numbers["flat"], numbers["gradients"] = flatness(at), float(moved / gradient.abs().max())
            numbers["rows elsewhere"] = float(difference[2 * inputs :].max())
            numbers["gained"] = numbers["zeros"] - zeros(matrix(beside, "hessian"))
            layer = slice(inputs * width, inputs * width + width * width)
            block, other = (zeros(matrix(point, "gauss_newton")[layer, layer]) for point in (at, beside))
            numbers["block gained"] = block - other
            table.add(seed, "plain", case, "overlap", numbers)
            table.add(seed, "plain", case, "overlap, optimum", hessian_numbers(at.at_an_optimum())[1])
            if done == 0:
                for k, value in enumerate(difference):
                    table.add(seed, "plain", case, "overlap", {"row difference": float(value)}, x=k)
    return table.frame()


@trial("orhan2017/singular-three-layers", version=1)
def three_layers(settings: SingularNetworks, bench: Bench) -> pd.DataFrame:
    """Note 2: linear networks at every point, plain and residual, for each shape.

    ``gauss-newton``, ``a-block``, ``b-block`` are numbers of zeros, ``… predicted`` the closed forms with the ranks
    found; ``eq 30`` the largest deviation of H's a-block from Σ_β b_i b_j (or with skips).
    """
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.singular.hessians import block_zeros, gauss_newton_zeros, matrices, three_layer_point

    table = Table(2)
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        for case, (hidden, modes) in SHAPES.items():
            for network, points in (("plain", PLAIN_POINTS), ("residual", RESIDUAL_POINTS)):
                for point in points:
                    generator = torch_generator(seed, "note 2", case)
                    at = three_layer_point(network, hidden, modes, point, generator)
                    H, numbers = hessian_numbers(at)
                    numbers["flat"] = flatness(at)
                    gauss_newton, size = matrix(at, "gauss_newton"), hidden * modes
                    A, B = matrices(at.net)
                    rank_a, rank_b = (int(torch.linalg.matrix_rank(each)) for each in (A, B))
                    # A's numbers run over units, then modes.
                    block = torch.kron(B.T @ B, torch.eye(modes, dtype=torch.float64))
                    numbers |= {
                        "gauss-newton": zeros(gauss_newton),
                        "gauss-newton predicted": gauss_newton_zeros(hidden, modes, rank_a, rank_b),
                        "a-block": zeros(gauss_newton[:size, :size]),
                        "a-block predicted": block_zeros(hidden, modes, rank_b),
                        "b-block": zeros(gauss_newton[size:, size:]),
                        "b-block predicted": block_zeros(hidden, modes, rank_a),
                        "eq 30": float((H[:size, :size] - block).abs().max() / block.abs().max()),
                    }
                    table.add(seed, network, case, point, numbers)
                    if point == "b overlaps":
                        table.add(
                            seed, network, case, f"{point}, optimum", hessian_numbers(at.at_an_optimum())[1]
                        )
    return table.frame()


@trial("orhan2017/singular-reduced", version=1)
def reduced(settings: SingularNetworks, bench: Bench) -> pd.DataFrame:
    """Note 3: one unit per layer, a_1 = a_2, for each u/s; x is u/s.

    ``eqs 36–37`` is their largest deviation from the exact Hessian; ``eigenvalue`` is dᵀHd for d = (e_1 − e_2)/√2,
    times (a_1 + c)²/s², and ``eigenvalue deviation`` the relative one from u(s − u)/(a_1 + c)².
    """
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.singular.hessians import (
        other_singular_ratio,
        reduced_factors,
        reduced_hessian,
        reduced_point,
    )

    table = Table(3)
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"network {seed}")
        strengths = 0.5 + torch.rand(
            settings.depth, generator=torch_generator(seed, "note 3"), dtype=torch.float64
        )
        strengths[1] = strengths[0]
        for network in NETWORKS:
            factors = reduced_factors(network, strengths)
            u = float(factors.prod())
            for ratio in sorted({*settings.ratios, other_singular_ratio(settings.depth)}):
                at = reduced_point(network, strengths, ratio)
                H, numbers = hessian_numbers(at)
                s, scale = u / ratio, float(H.abs().max())
                along = float((at.directions @ H @ at.directions.T).squeeze())
                numbers |= {
                    "eqs 36–37": float((H - reduced_hessian(factors, s)).abs().max()) / scale,
                    "eigenvalue": along * float(factors[0]) ** 2 / s**2,
                    "eigenvalue deviation": abs(along - u * (s - u) / float(factors[0]) ** 2) / scale,
                }
                table.add(seed, network, f"{settings.depth} layers", "a_1 = a_2", numbers, x=ratio)
    return table.frame()
