"""Six defects that are planted in a healthy network, each in a layer that the seed chooses.

``plant(defect, network, seed)`` returns a changed copy of the model and the names that count as the defect's place:
the layer, the normalisation and the activation directly behind it, and the residual addition whose branch it is in
(as ``residual_blocks`` names it). Where the first layer that the seed draws cannot carry the defect (100 times the
gain of a layer that a factor next to it takes back, say), the next one that the seed draws is tried.

A finding counts as right if it names one of these places and its id is in ``ACCEPTED`` for the defect.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from cases.following import Site, is_bounded, outputs, rms, sites, units_first
from cases.networks import Network
from torch import Tensor, nn

from skiplab.randomness import torch_generator
from skiplab.subjects.rectifiers import is_rectifier
from skiplab.subjects.residual_blocks import ResidualBlock, residual_blocks

# By defect: which of a diagnosis's findings, at one of the defect's places, name it.
ACCEPTED: dict[str, frozenset[str]] = {
    "dead-layer": frozenset({"dead-layer", "dead-units"}),
    "duplicated-unit": frozenset({"duplicated-units"}),
    "nearly-duplicated-unit": frozenset({"duplicated-units"}),
    "exploding-branch": frozenset({"exploding-branch", "outlying-gain"}),
    "zero-head": frozenset({"zero-weights"}),
    "saturated": frozenset({"saturated-activations"}),
    "outlying-gain": frozenset({"outlying-gain", "exploding-branch"}),
}
NEAR = 1e-4  # how far a near-copy's weights are from the original's, in units of their RMS
GAIN = 100.0


@dataclass(frozen=True)
class Planted:
    """A model with a defect, the layer that has it, and all names that count as its place; ``detail`` says how."""

    model: nn.Module
    layer: str
    places: frozenset[str]
    detail: str


class CannotBePlanted(Exception):
    """No layer of the network can carry the defect."""


def plant(defect: str, network: Network, seed: int) -> Planted:
    """Plant a defect in a copy of a network's model."""
    found = sites(network.model, network.batch)
    blocks = residual_blocks(network.model, network.batch).blocks
    stream = torch_generator(seed, "cases", "planting", defect)
    for change in PLANTERS[defect](network, found, blocks, stream):
        model = copy.deepcopy(network.model)
        with torch.no_grad():
            planted = change(model)
        if planted is not None:
            layer, names, detail = planted
            inside = min((b for b in blocks if layer in b.layers), key=lambda b: len(b.layers), default=None)
            places = names | ({inside.name} if inside else set())
            return Planted(model, layer, frozenset(places), detail)
    raise CannotBePlanted(f"{defect} in {type(network.model).__name__}")


Answer = tuple[str, frozenset[str], str] | None
Change = Callable[[nn.Module], Answer]
Planter = Callable[..., Iterator[Change]]


def _shuffled(items: list[Any], stream: torch.Generator) -> list[Any]:
    return [items[i] for i in torch.randperm(len(items), generator=stream)]


def _parts(model: nn.Module, site: Site) -> tuple[Any, Any, Any]:
    every = dict(model.named_modules())
    return every[site.layer], every.get(site.norm or "-"), every.get(site.activation or "-")


def dead_layer(network: Network, found: Any, blocks: Any, stream: torch.Generator) -> Iterator[Change]:
    """A rectifier behind the layer passes nothing on: the bias, or a normalisation's shift, is far below zero."""

    def change(site: Site) -> Change:
        def apply(model: nn.Module) -> Answer:
            layer, norm, _ = _parts(model, site)
            if norm is not None:
                norm.weight.zero_()
                norm.bias.fill_(-25.0)
                how = f"scale 0 and shift −25 in {site.norm}"
            else:
                layer.bias.sub_(10 * site.largest + 25)
                how = f"biases of {site.layer} lowered by {10 * site.largest + 25:.3g}"
            passed = outputs(model, network.batch, {site.activation})[site.activation]
            return (site.layer, site.names, how) if float(passed.abs().max()) < 1e-6 else None

        return apply

    def fits(site: Site) -> bool:
        layer, norm, act = _parts(network.model, site)
        return act is not None and is_rectifier(act) and (norm is not None or layer.bias is not None)

    return map(change, _shuffled([site for site in found if fits(site)], stream))


def _duplicated(near: float) -> Planter:
    def planter(network: Network, found: Any, blocks: Any, stream: torch.Generator) -> Iterator[Change]:
        def change(site: Site) -> Change:
            def apply(model: nn.Module) -> Answer:
                layer, norm, _ = _parts(model, site)
                weight = units_first(layer)
                one, other = torch.randperm(len(weight), generator=stream)[:2].tolist()
                noise = 2 * torch.rand(weight[one].shape, generator=stream) - 1
                weight[other] = weight[one] + near * rms(weight[one]) * noise
                if layer.bias is not None:
                    layer.bias[other] = layer.bias[one]
                if norm is not None:
                    norm.weight[other], norm.bias[other] = norm.weight[one], norm.bias[one]
                return site.layer, site.names, f"unit {other} of {site.layer} copies unit {one}"

            return apply

        def fits(site: Site) -> bool:
            layer = _parts(network.model, site)[0]
            weight = units_first(layer)
            own = not hasattr(layer, "parametrizations")
            return own and getattr(layer, "groups", 1) == 1 and len(weight) >= 8 and weight[0].numel() >= 4

        # Two equal classes of the last layer are no unit's copy of another.
        return map(change, _shuffled([site for site in found[:-1] if fits(site)], stream))

    return planter


def exploding_branch(
    network: Network, found: Any, blocks: tuple[ResidualBlock, ...], stream: torch.Generator
) -> Iterator[Change]:
    """The last layer of a residual branch (or the normalisation behind it) is 30, 100 or 300 times as large."""
    by_layer = {site.layer: site for site in found}

    def change(block: ResidualBlock) -> Change:
        def apply(model: nn.Module) -> Answer:
            last = [name for name in block.layers if name in by_layer][-1:]
            if not last:
                return None
            site, factor = (
                by_layer[last[0]],
                (30.0, 100.0, 300.0)[int(torch.randint(3, (), generator=stream))],
            )
            layer, norm, _ = _parts(model, site)
            for part in [layer] if norm is None else [norm]:
                part.weight.mul_(factor)
                if part.bias is not None:
                    part.bias.mul_(factor)
            where = {block.name.partition("#")[0]}
            if not where <= dict(model.named_modules()).keys():
                return None
            before, after = (outputs(m, network.batch, where) for m in (network.model, model))
            grown = [rms(after[name]) / rms(before[name]) for name in where]
            names = site.names | {block.name}
            return (site.layer, names, f"{site.norm or site.layer} × {factor:g}") if grown[0] > 5 else None

        return apply

    return map(change, _shuffled([block for block in blocks if block.shortcut != "gated"], stream))


def zero_head(network: Network, found: Any, blocks: Any, stream: torch.Generator) -> Iterator[Change]:
    """The weights and biases of the layer that is called last are 0."""

    def apply(model: nn.Module) -> Answer:
        layer = _parts(model, found[-1])[0]
        layer.weight.zero_()
        if layer.bias is not None:
            layer.bias.zero_()
        return found[-1].layer, frozenset({found[-1].layer}), f"{found[-1].layer} is 0"

    return iter([apply])


def saturated(network: Network, found: Any, blocks: Any, stream: torch.Generator) -> Iterator[Change]:
    """A tanh or sigmoid is given numbers that are far from 0, by large weights or by large biases of either sign."""

    def change(site: Site) -> Change:
        def apply(model: nn.Module) -> Answer:
            layer, norm, act = _parts(model, site)
            part = layer if norm is None else norm
            by_bias = bool(torch.randint(2, (), generator=stream)) and part.bias is not None
            if by_bias:
                signs = 2 * torch.randint(2, part.bias.shape, generator=stream) - 1
                part.bias.copy_(30.0 * signs)
            else:
                part.weight.mul_(200.0 / (site.product if norm is None else 1.0))
            how = (
                f"biases of {site.norm or site.layer} ±30"
                if by_bias
                else f"large weights of {site.norm or site.layer}"
            )
            share = float(
                is_flat(outputs(model, network.batch, {site.activation})[site.activation], act).float().mean()
            )
            return (site.layer, site.names, how) if share > 0.9 else None

        return apply

    def fits(site: Site) -> bool:
        act = _parts(network.model, site)[2]
        return act is not None and is_bounded(act)

    return map(change, _shuffled([site for site in found if fits(site)], stream))


def is_flat(answer: Tensor, act: nn.Module) -> Tensor:
    """Where a tanh or sigmoid, by what it returned, has less than a twentieth of its largest derivative."""
    if "tanh" in type(act).__name__.lower():
        return 1 - answer.square() < 0.05
    if "hard" in type(act).__name__.lower():
        return (answer <= 0) | (answer >= 1)
    return answer * (1 - answer) < 0.05 / 4


def outlying_gain(network: Network, found: Any, blocks: Any, stream: torch.Generator) -> Iterator[Change]:
    """The weights of one layer are 100 times as large, and its gain at least five times that of any other layer."""

    def change(site: Site) -> Change:
        def apply(model: nn.Module) -> Answer:
            layer = _parts(model, site)[0]
            if hasattr(layer, "parametrizations"):
                return None
            layer.weight.mul_(GAIN)
            now = sites(model, network.batch)
            gains = {each.layer: each.product / each.given if each.given else 0.0 for each in now}
            others = max((gain for name, gain in gains.items() if name != site.layer), default=0.0)
            how = f"weights of {site.layer} × {GAIN:g}"
            return (site.layer, site.names, how) if gains[site.layer] > 5 * others else None

        return apply

    return map(change, _shuffled(list(found), stream))


PLANTERS: dict[str, Planter] = {
    "dead-layer": dead_layer,
    "duplicated-unit": _duplicated(0.0),
    "nearly-duplicated-unit": _duplicated(NEAR),
    "exploding-branch": exploding_branch,
    "zero-head": zero_head,
    "saturated": saturated,
    "outlying-gain": outlying_gain,
}
