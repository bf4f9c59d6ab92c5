"""What ``singularities`` finds, per unit, layer and network; its docstring says what the numbers mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from skiplab.checks import Refused, near
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import Mark, Result, number_of
from skiplab.subjects.blocks import shown


@dataclass(frozen=True)
class LayerSingularities:
    """One layer's units; every tensor is (E, units).

    ``readers`` are the layers that read the units; if none could be identified, ``outgoing`` is NaN and the
    responses are the layer's own output, before any activation. ``overlap`` is a unit's mean correlation
    with the others and ``closest`` its largest; NaN where weights do not vary (a unit with zero weights, a
    layer with one input) or no other unit reads the same inputs. ``eigenvalues`` are those of the responses'
    covariance, descending. ``stuck`` is None where no loss was given.
    """

    name: str
    readers: tuple[str, ...]
    incoming: Tensor
    outgoing: Tensor
    dead: Tensor
    zero: Tensor
    stuck: Tensor | None
    overlap: Tensor
    closest: Tensor
    eigenvalues: Tensor
    top: int = 3

    @property
    def norm(self) -> Tensor:
        """Mean norm of the incoming weights, (E,)."""
        return self.incoming.mean(1)

    @property
    def mean_overlap(self) -> Tensor:
        """Mean correlation over pairs of units, (E,); units without one are left out."""
        return self.overlap.nanmean(1)

    @property
    def dependence(self) -> Tensor:
        """Share of the largest eigenvalues in the covariance of the responses, (E,)."""
        total = self.eigenvalues.sum(1)
        return torch.where(total > 0, self.eigenvalues[:, : self.top].sum(1) / total, 1.0)

    @property
    def entropy_rank(self) -> Tensor:
        """exp(entropy) of the eigenvalues' shares, (E,)."""
        total = self.eigenvalues.sum(1, keepdim=True)
        shares = self.eigenvalues / total
        entropy = torch.special.entr(shares).sum(1)
        return torch.where(total[:, 0] > 0, entropy.exp(), 0.0)


@dataclass(frozen=True, repr=False)
class Singularities(Result):
    """The layers in the order they are called, and the network's means over layers, each (E,)."""

    title = "Singularities"
    reference = "Orhan & Pitkow (2018), figures 1 and 4"
    on_axes: ClassVar[Mapping[str, str]] = {
        "dead units": "share of dead units",
        "overlap of units": "overlap: mean correlation of two units' weights",
        "linear dependence": "linear dependence: share of the largest eigenvalues",
        "entropy rank": "entropy rank of the responses (units)",
        "zero responses": "share of responses that are 0",
    }

    layers: tuple[LayerSingularities, ...]
    samples: int
    left_out: str = ""

    @property
    def places(self) -> tuple[str, ...]:
        """Names of the layers."""
        return self.names

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What each layer has, (E, layers): of its weights and of these very samples, so without an error."""
        every = {
            "dead units": [layer.dead.double().mean(1) for layer in self.layers],
            "overlap of units": [layer.mean_overlap for layer in self.layers],
            "linear dependence": [layer.dependence for layer in self.layers],
            "entropy rank": [layer.entropy_rank for layer in self.layers],
            "norm of incoming weights": [layer.norm for layer in self.layers],
            "zero responses": [layer.zero.mean(1) for layer in self.layers],
        }
        return {words: Estimate.exact(torch.stack(values, 1)) for words, values in every.items()}

    @property
    def by_unit(self) -> Mapping[str, Sequence[Tensor]]:
        """What each unit has; stuck ones are known where a loss was given."""
        every: dict[str, list[Tensor]] = {
            "dead": [layer.dead for layer in self.layers],
            "zero responses": [layer.zero for layer in self.layers],
            "norm of incoming weights": [layer.incoming for layer in self.layers],
            "norm of outgoing weights": [layer.outgoing for layer in self.layers],
            "overlap with others": [layer.overlap for layer in self.layers],
            "largest overlap": [layer.closest for layer in self.layers],
        }
        stuck = [layer.stuck for layer in self.layers if layer.stuck is not None]
        return every | ({"stuck": stuck} if len(stuck) == len(self.layers) else {})

    @property
    def based_on(self) -> str:
        """How many samples there were."""
        return number_of(self.samples, "sample")

    @property
    def remarks(self) -> Sequence[str]:
        """Layers of which it is not known which layers read them."""
        alone = [layer.name for layer in self.layers if not layer.readers]
        count = f"of {len(alone)} layer{'s' * (len(alone) != 1)} no reader is known"
        lines = (f"{count}, their responses are before any activation: {shown(alone)}",) if alone else ()
        return (*lines, *super().remarks)

    @property
    def yardstick(self) -> str:
        """Units that have nothing in common."""
        top = self.layers[0].top
        return (
            f"of n units with nothing in common none is dead, overlap is 0, dependence {top}/n and the rank n"
        )

    @property
    def marks(self) -> Sequence[Mark]:
        """What units with nothing in common have, by their number in each layer."""
        units = [layer.eigenvalues.shape[1] for layer in self.layers]
        shares = [min(1.0, layer.top / count) for layer, count in zip(self.layers, units, strict=True)]
        words = "nothing in common"
        return (
            ("overlap of units", 0.0, words),
            ("linear dependence", shares, words),
            ("entropy rank", units, words),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the layers."""
        return tuple(layer.name for layer in self.layers)

    @property
    def norm(self) -> Tensor:
        """Mean norm of incoming weights (orhan2018, figure 4c)."""
        return torch.stack([layer.norm for layer in self.layers], 1).mean(1)

    @property
    def overlap(self) -> Tensor:
        """Mean overlap of units (figure 4d)."""
        return torch.stack([layer.mean_overlap for layer in self.layers], 1).nanmean(1)

    @property
    def dependence(self) -> Tensor:
        """Mean linear dependence between units (figure 4e)."""
        return torch.stack([layer.dependence for layer in self.layers], 1).mean(1)

    @property
    def entropy_rank(self) -> Tensor:
        """Mean entropy rank of the responses."""
        return torch.stack([layer.entropy_rank for layer in self.layers], 1).mean(1)

    @property
    def dead(self) -> Tensor:
        """Share of units whose response is the same on every sample."""
        return torch.cat([layer.dead for layer in self.layers], 1).double().mean(1)

    @property
    def zero(self) -> Tensor:
        """Probability of a zero response, over units and samples (figure 7b)."""
        return torch.cat([layer.zero for layer in self.layers], 1).mean(1)

    def __getitem__(self, name: str) -> LayerSingularities:
        for layer in self.layers:
            if layer.name == name:
                return layer
        raise Refused(f"layer {name!r} was not measured.{near(name, self.names)}")
