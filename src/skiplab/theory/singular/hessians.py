"""Networks at the points where orhan2017's notes 1–3 call the Hessian singular, and what is true there.

Note 1, a multilayer network with units i and j of one layer that have equal incoming weights; note 2, the linear
network y = B A x with n hidden units and m modes, plain or with W + I for each matrix,

    E = ½ ‖S − B A‖²,       a_i = a_j: rows i, j of A equal,       b_i = b_j: columns i, j of B equal;

note 3, the reduced network E = ½ (s − u)², u = Π (a_l + c_l), with c_l = 0, 1 or l (plain, residual,
hyper-residual). What holds, with R = S − B A the error:

    along d = (outgoing weights of i) − (those of j) the loss is flat, so dᵀHd = 0; but H d = ∓(error) in the incoming
    weights of i and j, which is 0 only at an optimum. As H maps the k outgoing directions to the f incoming weights,
    an overlap adds max(0, k − f) zeros to H: none in note 2, where both are m;
    Gauss–Newton has 2nm − m(r_A + r_B) + r_A r_B zeros, r the ranks: n² for n ≤ m, whatever the network;
    its block of A is I ⊗ BᵀB with m(n − r_B) zeros, that of B is AAᵀ ⊗ I with m(n − r_A): an overlap adds m if n ≤ m;
    the reduced Hessian is u² D (ρ 11ᵀ + (1 − ρ) I) D with ρ = 2 − s/u and D = diag(1/(a_l + c_l)), so it is singular
    at u = s (L − 1 zeros) and u = s (L − 1)/(2L − 1) (one zero) in all three networks, and nowhere else but u = 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from skiplab.architectures.fully_connected import PlainNet
from skiplab.architectures.initialisers import Glorot
from skiplab.architectures.linear import HyperResidualLinearNet, PlainLinearNet, ResidualLinearNet
from skiplab.architectures.skip_matrices import orthogonal
from skiplab.checks import at_least, one_of

LINEAR_NETS: dict[str, type[PlainLinearNet]] = {
    "plain": PlainLinearNet,
    "residual": ResidualLinearNet,
    "hyper-residual": HyperResidualLinearNet,
}
# a, b: rows of the first matrix, columns of the second. "b + u overlaps" is an overlap of W₂ + I.
POINTS = ("generic", "a overlaps", "b overlaps", "both overlap", "a is zero", "b + u overlaps")
UNITS = (0, 1)  # the pair i, j


@dataclass(frozen=True)
class SingularPoint:
    """A network at a point, its samples, and the directions (k, P) along which it is predicted to be flat.

    ``names`` are the weights that vary, in the order of a direction's numbers; ``i_row`` and ``j_row`` the numbers
    of the weights whose rows of H the notes call identical. The loss is ½ Σ (target − output)².
    """

    net: nn.Module
    names: tuple[str, ...]
    inputs: Tensor
    targets: Tensor
    directions: Tensor
    i_row: int = 0
    j_row: int = 0

    def loss_along(self, direction: Tensor, steps: Tensor) -> Tensor:
        """E(θ + t·d) for every step t."""
        weights = dict(self.net.named_parameters())
        sizes = [weights[name].numel() for name in self.names]
        parts = dict(zip(self.names, direction.split(sizes), strict=True))
        losses = []
        with torch.no_grad():
            for step in steps:
                moved = {n: weights[n] + step * part.view_as(weights[n]) for n, part in parts.items()}
                errors = self.targets - functional_call(self.net, moved, self.inputs)
                losses.append(errors.square().sum() / 2)
        return torch.stack(losses)

    def at_an_optimum(self) -> SingularPoint:
        """The same network where its outputs are the targets."""
        with torch.no_grad():
            fitted = self.net(self.inputs)
        return SingularPoint(
            self.net, self.names, self.inputs, fitted, self.directions, self.i_row, self.j_row
        )


def multilayer_overlap(
    activation: str,
    sizes: tuple[int, int, int],
    samples: int,
    generator: torch.Generator,
    *,
    beside: bool = False,
) -> SingularPoint:
    """Note 1: two hidden layers, units 0 and 1 of the first with equal incoming weights, no biases.

    ``sizes`` are inputs, width and outputs; ``beside`` leaves the two units different. Directions are the outgoing
    weights to each unit of the second layer, +1/√2 from unit 0 and −1/√2 from unit 1.
    """
    inputs, width, outputs = sizes
    at_least("width", width, 2)
    at_least("samples", samples, 50)  # or no draw may be fit
    # A gain of 2 makes tanh units nonlinear enough to tell a small eigenvalue from a zero.
    options: dict[str, Any] = {"activation": activation, "init": Glorot(gain=2.0), "dtype": torch.float64}
    net = PlainNet(inputs, width, 2, outputs, generator=generator, **options)
    normal: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
    x, y = torch.randn(samples, inputs, **normal), torch.randn(samples, outputs, **normal)
    names = ("hidden.0.linear.weight", "hidden.1.linear.weight", "output.weight")
    first, second, _ = (net.get_parameter(name) for name in names)
    with torch.no_grad():
        if not beside:
            first[1] = first[0]
        # A rectified unit that is never silent, or never active together with one below it, has zeros of its own:
        # such units are drawn again.
        while activation == "relu" and (unfit := _unfit(net, x)).any():
            second[unfit] = torch.randn(int(unfit.sum()), width, **normal)
    directions = _pairs(
        torch.zeros(width, first.numel() + width * (width + outputs)), first.numel(), width, 1
    )
    row = first.numel()
    return SingularPoint(net, names, x, y, directions, row, row + 1)


def _unfit(net: PlainNet, inputs: Tensor, least: float = 0.05) -> Tensor:
    """Which units of the second layer are active, with some unit of the first or in all, too rarely or too often."""
    below = (net.hidden[0](inputs) > 0).double()
    above = (net.hidden[1](net.hidden[0](inputs)) > 0).double()
    together = above.T @ below / len(inputs)
    return (together.amin(1) < least) | (above.mean(0) > 1 - least)


def three_layer_point(
    network: str, hidden: int, modes: int, point: str, generator: torch.Generator
) -> SingularPoint:
    """Note 2: a three-layer linear network of ``hidden`` units at one of POINTS, on orthonormal inputs.

    The target is U S Vᵀ with random orthogonal U, V and singular values between ½ and 3. Equal generators give
    equal weights but for those that make the point.
    """
    one_of("network", network, ("plain", "residual"))
    one_of("point", point, POINTS)
    at_least("hidden", hidden, 2)
    at_least("modes", modes, 2)
    net = LINEAR_NETS[network]((modes, hidden, modes), generator=generator, dtype=torch.float64)
    strengths = 0.5 + 2.5 * torch.rand(modes, generator=generator, dtype=torch.float64)
    map_ = (orthogonal(modes, generator) * strengths) @ orthogonal(modes, generator).T
    names = ("layers.0.linear.weight", "layers.1.linear.weight")
    first, second = (net.get_parameter(name) for name in names)
    i, j = UNITS
    with torch.no_grad():
        if point in ("a overlaps", "both overlap"):
            first[j] = first[i]
        if point in ("b overlaps", "both overlap"):
            second[:, j] = second[:, i]
        if point == "a is zero":
            first[i] = 0
        if point == "b + u overlaps":
            identity = torch.eye(modes, hidden, dtype=torch.float64)
            second[:, j] = second[:, i] + identity[:, i] - identity[:, j]
    size = first.numel()
    incoming = _pairs(torch.zeros(modes, 2 * size), 0, 1, modes)  # A is (n, m): unit i's weights are a row
    outgoing = _pairs(torch.zeros(modes, 2 * size), size, hidden, 1)
    if point == "a is zero":
        outgoing = outgoing.clamp(min=0) * 2**0.5  # from unit i alone
    chosen = {
        "generic": (outgoing,),
        "a overlaps": (outgoing,),
        "a is zero": (outgoing,),
        "both overlap": (incoming, outgoing),
    }.get(point, (incoming,))
    # Note 2's columns are those of a_i, a_j in one mode where b overlaps, of b_i, b_j where a does.
    rows = (0, modes) if chosen[0] is incoming else (size, size + 1)
    basis = torch.eye(modes, dtype=torch.float64)
    return SingularPoint(net, names, basis, map_.T.contiguous(), torch.cat(chosen), *rows)


def _pairs(zeros: Tensor, start: int, stride: int, apart: int) -> Tensor:
    """Directions +1/√2 and −1/√2 on two numbers ``apart``, from ``start`` on in steps of ``stride``."""
    directions = zeros.to(torch.float64)
    each = torch.arange(len(directions))
    directions[each, start + stride * each] = 0.5**0.5
    directions[each, start + stride * each + apart] = -(0.5**0.5)
    return directions


def matrices(net: nn.Module) -> list[Tensor]:
    """The matrices W + c I of a linear network's layers, skips included; for three layers A and B."""
    assert isinstance(net, PlainLinearNet)
    return [
        weight.detach() + net.identities(number) * torch.eye(*weight.shape, dtype=weight.dtype)
        for number, weight in enumerate(net.parameters(), start=1)
    ]


def gauss_newton_zeros(hidden: int, modes: int, rank_a: int, rank_b: int) -> int:
    """Zeros of the Gauss–Newton matrix of y = B A x: 2nm − m(r_A + r_B) + r_A r_B.

    Its range is that of (dA, dB) ↦ dB A + B dA: m r_A and m r_B numbers, of which r_A r_B are counted twice.
    """
    return 2 * hidden * modes - modes * (rank_a + rank_b) + rank_a * rank_b


def block_zeros(hidden: int, modes: int, other_rank: int) -> int:
    """Zeros of the block of one matrix, m(n − r) with r the rank of the other."""
    return modes * (hidden - other_rank)


def reduced_point(network: str, strengths: Tensor, ratio: float) -> SingularPoint:
    """Note 3: a network of one unit a layer with weights a_l, and s such that u/s is the given ratio.

    The direction is (e_0 − e_1)/√2, the rows those of the first two layers.
    """
    one_of("network", network, LINEAR_NETS)
    net = LINEAR_NETS[network]((1,) * (len(strengths) + 1), generator=torch.Generator(), dtype=torch.float64)
    with torch.no_grad():
        for weight, value in zip(net.parameters(), strengths, strict=True):
            weight.fill_(float(value))
    names = tuple(name for name, _ in net.named_parameters())
    one = torch.ones(1, 1, dtype=torch.float64)
    with torch.no_grad():
        target = net(one) / ratio
    direction = _pairs(torch.zeros(1, len(strengths)), 0, 1, 1)
    return SingularPoint(net, names, one, target, direction, 0, 1)


def reduced_factors(network: str, strengths: Tensor) -> Tensor:
    """a_l + c_l of eqs 21–23, the latter two with their labels put right."""
    one_of("network", network, LINEAR_NETS)
    constants = [LINEAR_NETS[network].identities(ell) for ell in range(1, len(strengths) + 1)]
    return strengths + torch.tensor(constants, dtype=strengths.dtype)


def reduced_hessian(factors: Tensor, target: float) -> Tensor:
    """The Hessian of ½ (s − Π p_l)² in p: (Π_{l≠i} p_l)² and (2u − s) Π_{l≠i,k} p_l (eqs 36, 37)."""
    u = factors.prod()
    inner = (2 * u - target) * u * torch.ones(len(factors), len(factors), dtype=factors.dtype)
    inner.fill_diagonal_(float(u * u))
    return inner / torch.outer(factors, factors)


def other_singular_ratio(depth: int) -> float:
    """u/s at which the reduced Hessian has one zero though it is no optimum: (L − 1)/(2L − 1)."""
    return (depth - 1) / (2 * depth - 1)
