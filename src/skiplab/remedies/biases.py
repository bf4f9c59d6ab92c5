"""Biases drawn towards random targets, which break the symmetries of plain networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skiplab.architectures.initialisers import bias_noise
from skiplab.checks import at_least, require, seeded
from skiplab.remedies.observing import observed
from skiplab.remedies.tracing import copied
from skiplab.remedies.treated import Treated, chosen, counted
from skiplab.subjects.batches import Batch
from skiplab.subjects.weight_layers import check_weight_layers, weight_layers

REMEDY = "regularising biases"


@dataclass(frozen=True)
class BiasPenalty:
    """λ Σ‖b − t‖² over the biases with targets t, by their names as parameters of the network that is given."""

    targets: Mapping[str, Tensor]
    strength: float

    def __call__(self, model: nn.Module) -> Tensor:
        """The penalty of a network, to be added to its loss."""
        biases = dict(model.named_parameters())
        parts = [
            (biases[name] - target.to(biases[name])).square().sum() for name, target in self.targets.items()
        ]
        return self.strength * torch.stack(parts).sum()


def bias_regularisation(
    model: nn.Module,
    batch: Batch,
    *,
    sigma: float = 1.0,
    strength: float = 0.1,
    mean: float = 0.0,
    start: bool = False,
    seed: int = 0,
    where: Sequence[str] | None = None,
) -> Treated:
    """Return a copy with the penalty λ‖b − t‖² on its hidden biases, t ~ N(μ, σ²) drawn once by the seed.

    BiasSymmBreak of orhan2017, section 2.4.1, is the case μ = 0, BiasReg of orhan2018, section 3, has any μ; both
    start with biases of 0. With ``start`` biases begin at their targets, and with ``strength=0`` too that is
    BiasInit of orhan2017. The defaults σ = 1 and λ = .1 are what our search on CIFAR-10 found best
    (orhan2017/figure-7), at the end of its grid.

    Hidden are the biases of all weight layers but the last one that is called; ``where`` names some of the layers.
    ``penalty(model)`` of what is returned has to be added to the loss, ``strength`` being for a mean over samples.

    >>> treated = bias_regularisation(model, x, strength=0.01, start=True)
    >>> treated
    Sequential treated: biases of all 2 layers (0, 2) start at and are drawn to N(0, 1²) with strength 0.01
    >>> treated.penalty(treated.model).item()
    0.0
    """
    for what, value in (("sigma", sigma), ("strength", strength)):
        at_least(what, value, 0)
    seeded(seed)
    require(
        start or strength > 0, "strength is 0 and start is False, so nothing would change; set one of them."
    )
    check_weight_layers(model, None)
    layers = weight_layers(model)
    called = list(observed(model, batch, layers))
    hidden = [name for name in layers if name in called[:-1] and layers[name].bias is not None]
    require(
        bool(hidden),
        f"{type(model).__name__} has no weight layer with biases before its last one, so none to draw apart.",
    )
    names = chosen("layer with biases", hidden, where, dict(model.named_modules()))
    changed = copied(model, REMEDY)
    targets = _targets(changed, hidden, mean, sigma, seed)
    targets = {f"{name}.bias": targets[f"{name}.bias"] for name in names}
    with torch.no_grad():
        for name, target in targets.items():
            changed.get_parameter(name).copy_(target if start else torch.zeros_like(target))
    does = " and ".join(["start at"] * start + ["are drawn to"] * (strength > 0))
    words = f"biases of {counted(names, len(hidden), 'layer')} {does} N({mean:g}, {sigma:g}²)"
    if strength == 0:
        return Treated(changed, words)
    return Treated(changed, f"{words} with strength {strength:g}", BiasPenalty(targets, strength))


def _targets(
    model: nn.Module, names: Sequence[str], mean: float, sigma: float, seed: int
) -> dict[str, Tensor]:
    """Targets by the names of parameters: one stream for all, as training.regularisers draws them."""
    biases = [model.get_parameter(f"{name}.bias").detach() for name in names]
    noise = bias_noise(sum(bias.numel() for bias in biases), seed).split([bias.numel() for bias in biases])
    pairs = zip(names, biases, noise, strict=True)
    return {f"{name}.bias": (mean + sigma * drawn).to(bias) for name, bias, drawn in pairs}
