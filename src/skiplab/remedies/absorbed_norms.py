"""Batch normalisation absorbed into the layer before it, as in littwin2017, appendix C.

With its running mean m and variance v, scale γ and shift β a normalisation in evaluation mode is an affine map per
channel, so that behind a convolution or a linear layer with weights w and biases b it is that layer with

    w′ = w·γ/√(v + ε),    b′ = (b − m)·γ/√(v + ε) + β.

The network stays the same function in evaluation mode, and not in training mode, where batch statistics are gone.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn.utils import parametrize

from skiplab.checks import require
from skiplab.remedies.tracing import copied, traced

REMEDY = "absorbing batch normalisation"
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


def normalised_layers(model: nn.Module) -> dict[str, str]:
    """The layers whose output a batch normalisation alone reads, and the name of that normalisation, in their order.

    Left out are parts that are called more than once, normalisations that follow batch statistics in evaluation mode
    too, and layers with parametrised weights. A linear layer's output is taken to be (batch, features).

    >>> normalised_layers(torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU()))
    {'0': '1'}
    """
    graph = traced(model, REMEDY)
    parts = dict(model.named_modules(remove_duplicate=False))
    calls = Counter(id(parts[str(node.target)]) for node in graph.nodes if node.op == "call_module")

    def once(node: Any, kinds: tuple[type[nn.Module], ...]) -> nn.Module | None:
        if not (isinstance(node, fx.Node) and node.op == "call_module"):
            return None
        part = parts[str(node.target)]
        # Not isinstance: timm's BatchNormAct2d is a BatchNorm2d that also activates.
        return part if type(part) in kinds and calls[id(part)] == 1 else None

    found = {}
    for node in graph.nodes:
        before: Any = node.args[0] if node.args else None
        norm, layer = once(node, NORMS), once(before, LAYERS)
        if norm is None or layer is None or norm.running_var is None or parametrize.is_parametrized(layer):
            continue
        if len(before.users) == 1:
            found[str(before.target)] = str(node.target)
    return found


def without_norms(model: nn.Module) -> nn.Module:
    """A copy in evaluation mode whose ``normalised_layers`` have absorbed their normalisations."""
    chains = normalised_layers(model)
    require(
        bool(chains),
        f"{type(model).__name__} has no batch normalisation right behind a linear or convolutional layer to absorb.",
    )
    changed = copied(model, REMEDY).eval()
    with torch.no_grad():
        for layer_name, norm_name in chains.items():
            _absorb_(changed.get_submodule(layer_name), changed.get_submodule(norm_name))
            home, _, own = norm_name.rpartition(".")
            setattr(changed.get_submodule(home), own, nn.Identity())
    return changed


def factors(scale: Tensor | None, variance: Tensor, eps: float) -> Tensor:
    """γ/√(v + ε), by which absorbing multiplies every channel's weights; γ is 1 where there is none."""
    spread = (variance + eps).sqrt()
    return 1 / spread if scale is None else scale / spread


def _absorb_(layer: nn.Module, norm: nn.Module) -> None:
    weight, bias, mean = layer.weight, layer.bias, norm.running_mean
    assert isinstance(weight, Tensor)
    assert isinstance(mean, Tensor)
    factor = factors(norm.weight, norm.running_var, norm.eps)  # type: ignore[arg-type]
    shifted = (bias - mean if isinstance(bias, Tensor) else -mean) * factor
    whole = shifted if norm.bias is None else shifted + norm.bias  # type: ignore[operator]
    # New parameters, so that weights which the layer shares with another stay the other's.
    layer.weight = nn.Parameter(weight * factor.view(-1, *[1] * (weight.ndim - 1)))
    layer.bias = nn.Parameter(whole.to(weight.dtype))
