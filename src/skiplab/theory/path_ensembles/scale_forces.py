"""What a step of gradient descent does to scales λ_l and C where they stand still: littwin2017, theorems 3, 4, eq 21.

Many small networks at once, with layers N_l = (λ_l/σ_l) R(W_l N_{l−1}) (eq 22 with σ_l fixed) and blocks of layers
that an identity connection skips. The loss is linear in the output (lemma 3), one input per network. With the gates
as they are, the loss is a sum over paths, which a block splits into L_p through it and L_m beside it, so that

    ∂L/∂λ_l = (L_m + L_p)/λ_l outside the block,   L_p/λ_l inside,   ∂L/∂C = (m L_m + p L_p)/C,

and after a step w − μg these become −μ/λ_l ‖g‖², −μ/λ_l (‖g_p‖² + g_pᵀg_m) and eq 27 if they were 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from skiplab.checks import require

Skips = tuple[tuple[int, int], ...]  # first and last layer of every block that is skipped, counted from 1


@dataclass(frozen=True)
class SkippedNetworks:
    """E networks of p layers with the same skips; ``scales`` are λ_l/σ_l (1 without batch normalisation)."""

    weights: tuple[Tensor, ...]  # per layer (E, after, before)
    scales: Tensor  # (E, p)
    inputs: Tensor  # (E, d)
    readout: Tensor  # (E, n): the loss is readout · output
    skips: Skips

    @property
    def depth(self) -> int:
        """p."""
        return len(self.weights)

    def gates(self) -> tuple[Tensor, ...]:
        """Which units of every layer are active, (E, n) each."""
        found: list[Tensor] = []
        self.output(note=found.append)
        return tuple(found)

    def output(
        self,
        gates: Sequence[Tensor] | None = None,
        cut: int | None = None,
        note: Callable[[Tensor], None] = lambda gate: None,
    ) -> Tensor:
        """The last layer's units, (E, n); with given gates instead of R, without the paths through block ``cut``."""
        at, kept = self.inputs, self.inputs
        starts, ends = ([block[side] for block in self.skips] for side in (0, 1))
        for layer, weights in enumerate(self.weights, 1):
            kept = at if layer in starts else kept
            before = torch.einsum("eij,ej->ei", weights, at)
            gate = before > 0 if gates is None else gates[layer - 1]
            note(gate)
            at = self.scales[:, layer - 1, None] * gate * before
            if layer in ends:
                at = kept + (0 if ends.index(layer) == cut else at)
        return at

    def loss(self, gates: Sequence[Tensor] | None = None, cut: int | None = None) -> Tensor:
        """Readout times output, (E,)."""
        return (self.readout * self.output(gates, cut)).sum(1)

    def blind_to(self, direction: Tensor) -> SkippedNetworks:
        """The networks with the part of the readout along a direction (E, n) of outputs taken away."""
        along = (self.readout * direction).sum(1, keepdim=True) / direction.square().sum(1, keepdim=True)
        return replace(self, readout=self.readout - along * direction)

    def parts(self, block: int) -> tuple[Tensor, Tensor]:
        """What paths through a block and beside it add to the output, (E, n) each, gates as they are."""
        gates = self.gates()
        beside = self.output(gates, cut=block)
        return self.output(gates) - beside, beside

    def split_gradient(self, block: int) -> tuple[Tensor, Tensor]:
        """g_p and g_m: the gradients of the losses through a block and beside it, all weights in a row, (E, N)."""
        gates = self.gates()
        whole = self.gradient(lambda nets: nets.loss(gates))
        beside = self.gradient(lambda nets: nets.loss(gates, cut=block))
        return whole - beside, beside

    def gradient(self, of: Callable[[SkippedNetworks], Tensor]) -> Tensor:
        """The gradient of one number per network with respect to all weights in a row, (E, N)."""
        leaves = tuple(each.detach().requires_grad_() for each in self.weights)
        total = of(replace(self, weights=leaves)).sum()
        found = torch.autograd.grad(total, leaves, allow_unused=True, materialize_grads=True)
        return torch.cat([each.flatten(1) for each in found], dim=1)

    def moved(self, gradient: Tensor, rate: Tensor) -> SkippedNetworks:
        """The networks after a step of gradient descent with a learning rate per network, (E,)."""
        sizes = [each[0].numel() for each in self.weights]
        parts = (rate[:, None] * gradient).split(sizes, dim=1)
        after = [each - part.view_as(each) for each, part in zip(self.weights, parts, strict=True)]
        return replace(self, weights=tuple(after))

    def scale_slopes(self) -> Tensor:
        """∂L/∂(λ_l/σ_l) of every layer, (E, p)."""
        scales = self.scales.detach().requires_grad_()
        (found,) = torch.autograd.grad(replace(self, scales=scales).loss().sum(), scales)
        return found

    def size(self) -> Tensor:
        """C, the root mean square of all weights, (E,)."""
        return self.flat().square().mean(1).sqrt()

    def flat(self) -> Tensor:
        """All weights in a row, (E, N)."""
        return torch.cat([each.flatten(1) for each in self.weights], dim=1)

    def size_slope(self) -> Tensor:
        """∂L/∂C along w = C w̃, (E,)."""
        return (self.gradient(SkippedNetworks.loss) * self.flat()).sum(1) / self.size()


def losses_by_length(nets: SkippedNetworks) -> Tensor:
    """The sum over open paths of each length r = 0 … p, (E, p + 1), eq 20's inner sums; for skips of one layer."""
    require(
        all(first == last for first, last in nets.skips),
        f"skips are {nets.skips}, but lengths are told apart for skips of one layer each.",
    )
    at = nets.inputs.new_zeros(len(nets.inputs), nets.depth + 1, nets.inputs.shape[1])
    at[:, 0] = nets.inputs
    skipped = {first for first, _ in nets.skips}
    for layer, (weights, gate) in enumerate(zip(nets.weights, nets.gates(), strict=True), 1):
        crossed = nets.scales[:, layer - 1, None, None] * torch.einsum("eij,erj->eri", weights, at)
        crossed = torch.roll(crossed * gate[:, None], 1, dims=1)  # a path through the layer is one longer
        at = crossed + at if layer in skipped else crossed
    return torch.einsum("ei,eri->er", nets.readout, at)


def grows_at_every_angle(beside: Tensor, through: Tensor, m: int, p: int) -> Tensor:
    """Whether eq 27's m‖g_m‖² + p‖g_p‖² + (m + p) g_pᵀg_m is positive whatever the angle, from both norms.

    At its least, with opposed gradients, it is (m‖g_m‖ − p‖g_p‖)(‖g_m‖ − ‖g_p‖).
    """
    return (beside < through) | (m * beside > p * through)
