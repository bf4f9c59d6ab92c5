"""Constructed networks in which a scale stands still, and what one step of gradient descent does to it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    import torch
    from torch import Tensor

    from skiplab.theory.path_ensembles.scale_forces import SkippedNetworks

ONE_BLOCK = ((2, 3, 5), (2, 5, 5), (4, 4, 6))  # first and last layer that is skipped, and depth p
SEVERAL = 5  # layers of networks in which all but the first are skipped one by one
FEWEST = (
    3  # active units in every layer, so that there are paths, and readouts that are blind to some of them
)


@dataclass(frozen=True)
class Steps:
    """Settings of one trial: networks with a skip from layer ``first`` to ``last`` (0: over each layer from 2 on).

    ``steps`` are lengths of the step of gradient descent relative to the norm of the weights; one network per seed.
    """

    first: int
    last: int
    depth: int
    steps: tuple[float, ...]
    seeds: tuple[int, ...]
    width: int = 16


def shape_name(first: int, last: int, depth: int) -> str:
    """A network in words."""
    if not first:
        return f"p = {depth}, each layer from 2 on skipped"
    return f"p = {depth}, m = {depth - last + first - 1}, layers {first}–{last} skipped"


def skips_of(settings: Steps) -> tuple[tuple[int, int], ...]:
    """Blocks that are skipped."""
    if settings.first:
        return ((settings.first, settings.last),)
    return tuple((layer, layer) for layer in range(2, settings.depth + 1))


@trial("littwin2017/scale-steps", version=1)
def scale_steps(settings: Steps, bench: Bench) -> pd.DataFrame:
    """Theorem 3: λ_l outside and inside a block, each where it stands still; a row per network, layer and step.

    ``found`` is −λ_l ∂L/∂λ_l after the step over μ, ``predicted`` ‖g‖² or ‖g_p‖² + g_pᵀg_m, both over ``scale``,
    ‖g‖² or ‖g_p‖² + ‖g_p‖‖g_m‖; ``through`` and ``beside`` are ‖g_p‖ and ‖g_m‖.
    """
    import pandas as pd

    nets, parts = _drawn(settings), []
    for layer in range(1, settings.depth + 1):
        bench.tell(layer / (settings.depth + 1), f"layer {layer}")
        inside = [place for place, (first, last) in enumerate(nets.skips) if first <= layer <= last]
        if inside:
            still = nets.blind_to(nets.parts(inside[0])[0])
            through, beside = still.split_gradient(inside[0])
            predicted = (through * (through + beside)).sum(1)
            scale = through.square().sum(1) + through.norm(dim=1) * beside.norm(dim=1)
        else:
            still = nets.blind_to(nets.output())
            through, beside = still.gradient(type(still).loss), nets.inputs.new_zeros(len(nets.inputs), 1)
            predicted = scale = through.square().sum(1)
        gradient = through + beside
        for step in settings.steps:
            rate = step * still.flat().norm(dim=1) / gradient.norm(dim=1)
            slopes = still.moved(gradient, rate).scale_slopes()[:, layer - 1]
            found = -slopes * still.scales[:, layer - 1] / rate
            columns = {"found": found / scale, "predicted": predicted / scale}
            columns |= {"through": through.norm(dim=1), "beside": beside.norm(dim=1)}
            own = {"layer": layer, "inside": bool(inside), "step": step}
            parts.append(_frame(settings, columns).assign(**own))
    return pd.concat(parts, ignore_index=True).assign(shape=_name(settings))


@trial("littwin2017/size-steps", version=1)
def size_steps(settings: Steps, bench: Bench) -> pd.DataFrame:
    """Theorem 4: networks without batch normalisation whose scale C of all weights stands still.

    ``found`` is −C ∂L/∂C after the step over μ, ``predicted`` eq 27's bracket, both over m‖g_m‖² + p‖g_p‖² +
    (m + p)‖g_m‖‖g_p‖; ``through`` and ``beside`` are ‖g_p‖ and ‖g_m‖.
    """
    import pandas as pd

    nets, p = _drawn(settings, normalised=False), settings.depth
    m = p - (settings.last - settings.first + 1)
    through, beside = nets.parts(0)
    still = nets.blind_to(m * beside + p * through)
    through, beside = still.split_gradient(0)
    a, b, gradient = beside.norm(dim=1), through.norm(dim=1), through + beside
    scale = m * a**2 + p * b**2 + (m + p) * a * b
    predicted = (m * a**2 + p * b**2 + (m + p) * (through * beside).sum(1)) / scale
    parts = []
    for step in settings.steps:
        rate = step * still.flat().norm(dim=1) / gradient.norm(dim=1)
        found = -still.moved(gradient, rate).size_slope() * still.size() / rate
        columns = {"found": found / scale, "predicted": predicted, "through": b, "beside": a}
        parts.append(_frame(settings, columns).assign(step=step))
    return pd.concat(parts, ignore_index=True).assign(shape=_name(settings), m=m, p=p)


@trial("littwin2017/slope-of-size", version=1)
def slope_of_size(settings: Steps, bench: Bench) -> pd.DataFrame:
    """Eq 21: ∂L/∂C by differentiation less (1/C) Σ_r r L_r from paths, relative to (1/C) Σ_r r |L_r|."""
    import torch

    from skiplab.theory.path_ensembles.scale_forces import losses_by_length

    nets = _drawn(settings, normalised=False)
    terms = losses_by_length(nets) * torch.arange(settings.depth + 1)
    apart = nets.size_slope() * nets.size() - terms.sum(1)
    lengths = {"apart": apart / terms.abs().sum(1), "output": nets.loss() - losses_by_length(nets).sum(1)}
    return _frame(settings, lengths).assign(shape=_name(settings))


def _drawn(settings: Steps, *, normalised: bool = True) -> SkippedNetworks:
    """One network per seed; its stream goes on until every layer has active units."""
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.path_ensembles.scale_forces import SkippedNetworks

    nets = []
    for seed in settings.seeds:
        stream = torch_generator(seed, "skipped", settings.first, settings.last, settings.depth)
        while True:
            net = _network(settings, stream, normalised)
            if min(int(gate.sum()) for gate in net.gates()) >= FEWEST:
                break
        nets.append(net)
    layers = zip(*(net.weights for net in nets), strict=True)
    others = {
        name: torch.cat([getattr(net, name) for net in nets]) for name in ("scales", "inputs", "readout")
    }
    return SkippedNetworks(weights=tuple(map(torch.cat, layers)), skips=nets[0].skips, **others)


def _network(settings: Steps, stream: torch.Generator, normalised: bool) -> SkippedNetworks:
    import torch

    from skiplab.theory.path_ensembles.scale_forces import SkippedNetworks

    def normal(*shape: int) -> Tensor:
        return torch.randn(1, *shape, generator=stream, dtype=torch.float64)

    n, p = settings.width, settings.depth
    size = (2 / n) ** 0.5 * torch.exp(0.7 * normal(1, 1))  # from mostly short to mostly long paths
    net = SkippedNetworks(
        weights=tuple(size * normal(n, n) for _ in range(p)),
        scales=torch.ones(1, p, dtype=torch.float64),
        inputs=normal(n),
        readout=normal(n),
        skips=skips_of(settings),
    )
    if normalised:  # λ_l of either sign over a fixed σ_l
        net = replace(net, scales=torch.exp(0.5 * normal(p)) * torch.sign(normal(p)))
    return net


def _frame(settings: Steps, columns: dict[str, Tensor]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({"seed": settings.seeds, **{name: each.numpy() for name, each in columns.items()}})


def _name(settings: Steps) -> str:
    return shape_name(settings.first, settings.last, settings.depth)
