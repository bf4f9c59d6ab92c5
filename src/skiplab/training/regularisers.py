"""Penalties on parameters, added to each member's gradient with its own strength.

Weight decay and targets for biases are both λ‖θ_S − t‖² on some columns S of the rows, with the gradient
2λ(θ_S − t). Weight decay has S all weights and t = 0, or t what the weights decay to. The bias penalties of
orhan2017, section 2.4.1, have S the hidden biases: BiasSymmBreak draws targets t ~ N(0, σ²) once, BiasL2Reg is its
case σ = 0, BiasReg its case with mean μ. BiasInit has no penalty and only starts from such targets.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.architectures.initialisers import bias_noise
from skiplab.checks import require
from skiplab.ensembles import Ensemble


@dataclass(frozen=True)
class Penalty:
    """λ_e ‖θ_S − t‖² for each member e; ``targets`` (E or 1, |S|) are laid out slice after slice."""

    columns: tuple[slice, ...]
    strength: Tensor
    targets: Tensor | None = None

    def add_gradient_(self, rows: Tensor, gradient: Tensor) -> None:
        """Add 2λ(θ_S − t) to the gradient in place."""
        double = 2 * self.strength.unsqueeze(1)
        for columns, target in self._parts(rows):
            away = rows[:, columns] if target is None else rows[:, columns] - target
            gradient[:, columns].add_(double * away)

    def value(self, rows: Tensor) -> Tensor:
        """The penalty of each member, (E,)."""
        total = torch.zeros_like(self.strength)
        for columns, target in self._parts(rows):
            away = rows[:, columns] if target is None else rows[:, columns] - target
            total = total + away.square().sum(1)
        return self.strength * total

    def _parts(self, rows: Tensor) -> list[tuple[slice, Tensor | None]]:
        sizes = [columns.stop - columns.start for columns in self.columns]
        targets: Sequence[Tensor | None]
        targets = [None] * len(sizes) if self.targets is None else self.targets.split(sizes, dim=1)
        return list(zip(self.columns, targets, strict=True))


def weight_decay(
    ensemble: Ensemble,
    strength: float | Sequence[float],
    *,
    around: Mapping[str, Tensor] | None = None,
    biases: bool = False,
    but: Collection[str] = (),
) -> Penalty:
    """½λ‖w − a‖² on all weight matrices and kernels: the gradient gains λ(w − a), for a = 0 as in torch.optim.

    ``around`` gives a by the names of parameters, the same for all members, 0 for those that it does not name: with
    yu2019's ``transfer.id_entries`` the penalty is ‖T⁻¹(p)‖². ``biases`` decays vectors too, as torch.optim does,
    and ``but`` names parameters that do not decay.
    """
    shapes = dict(zip(ensemble.layout.names, ensemble.layout.shapes, strict=True))
    names = [name for name, shape in shapes.items() if (biases or len(shape) > 1) and name not in but]
    targets = None
    if around is not None:
        for name, tensor in around.items():
            known = shapes.get(name) if name in names else None
            require(
                known == tensor.shape,
                f"around has {name!r} of shape {tuple(tensor.shape)}, which decays in no network here; "
                "give it by the names and shapes of the networks' own weights.",
            )
        parts = [around.get(name, torch.zeros(shapes[name])).reshape(-1) for name in names]
        targets = torch.cat([part.to(ensemble.rows) for part in parts])[None]
    columns = tuple(ensemble.layout.columns(names))
    return Penalty(columns, _per_member(ensemble, strength) / 2, targets)


def bias_targets(
    ensemble: Ensemble,
    strength: float | Sequence[float],
    sigma: float | Sequence[float],
    seeds: Sequence[int],
    mean: float | Sequence[float] = 0.0,
) -> Penalty:
    """λ‖b − t‖² on the hidden biases, with t ~ N(μ, σ²) drawn once a member from its own seed."""
    columns = tuple(ensemble.layout.columns(hidden_biases(ensemble)))
    targets = draw_bias_targets(ensemble, sigma, seeds, mean)
    return Penalty(columns, _per_member(ensemble, strength), targets)


def start_biases_at_targets_(
    ensemble: Ensemble,
    sigma: float | Sequence[float],
    seeds: Sequence[int],
    mean: float | Sequence[float] = 0.0,
) -> None:
    """BiasInit: start from the biases that BiasSymmBreak would aim at, and leave them free."""
    targets = draw_bias_targets(ensemble, sigma, seeds, mean)
    at = 0
    for columns in ensemble.layout.columns(hidden_biases(ensemble)):
        width = columns.stop - columns.start
        ensemble.rows[:, columns] = targets[:, at : at + width]
        at += width


def draw_bias_targets(
    ensemble: Ensemble,
    sigma: float | Sequence[float],
    seeds: Sequence[int],
    mean: float | Sequence[float] = 0.0,
) -> Tensor:
    """Targets (E, hidden units): row e depends on seed e alone, so that a member equals its lone run."""
    require(len(seeds) == ensemble.size, f"{len(seeds)} seeds were given for {ensemble.size} members.")
    columns = ensemble.layout.columns(hidden_biases(ensemble))
    count = sum(part.stop - part.start for part in columns)
    noise = torch.stack([bias_noise(count, seed) for seed in seeds]).to(ensemble.rows)
    return _per_member(ensemble, mean).unsqueeze(1) + _per_member(ensemble, sigma).unsqueeze(1) * noise


def hidden_biases(ensemble: Ensemble) -> list[str]:
    """Names of the biases inside the network's blocks, which leaves out the output layer's."""
    from skiplab.subjects.blocks import block_names

    blocks = tuple(f"{name}." for name in block_names(ensemble.skeleton))
    names = [
        name for name in ensemble.layout.names if name.startswith(blocks) and name.endswith("linear.bias")
    ]
    require(bool(names), "the network has no biases named 'linear.bias' in its blocks to set targets for.")
    return names


def _per_member(ensemble: Ensemble, value: float | Sequence[float]) -> Tensor:
    values = [value] * ensemble.size if isinstance(value, int | float) else list(value)
    require(len(values) == ensemble.size, f"{len(values)} values were given for {ensemble.size} members.")
    return torch.tensor(values, dtype=ensemble.rows.dtype, device=ensemble.device)
