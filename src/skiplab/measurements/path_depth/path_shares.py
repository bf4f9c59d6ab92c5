"""What ``path_depth`` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from skiplab.checks import require
from skiplab.measurements.result import Estimate, Result, number_of
from skiplab.subjects.residual_blocks import ResidualBlocks


@dataclass(frozen=True, repr=False)
class PathDepth(Result):
    """Shares of Σ c_r² by path length r, (E, lengths), and the effective depth D = Σ r c_r²/Σ c_r², (E,).

    ``gradient`` has the shares of the squared gradient by length where a loss was given. ``cancellation`` is
    Σ c_r²/(Σ c_r)²: above 1 paths of different lengths oppose each other, and shares say less of the output.
    """

    title = "Share by path length"
    reference = "littwin2017, eq 9 and section 4; the effective depth is ours"
    place = "path length"

    layers: tuple[str, ...]  # the lengths
    shares: Estimate
    depth: Estimate
    cancellation: Tensor
    gradient: Estimate | None
    blocks: ResidualBlocks
    samples: int
    mode: str

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Shares of the output, and of the gradient if it was measured."""
        of_gradient = {} if self.gradient is None else {"of the gradient": self.gradient}
        return {"of the output": self.shares.within(0, 1)} | of_gradient

    @property
    def lengths(self) -> Tensor:
        """The path lengths as numbers."""
        return torch.arange(len(self.layers), device=self.shares.value.device, dtype=self.shares.value.dtype)

    @property
    def depth_by_size(self) -> Tensor:
        """Σ r |c_r| / Σ |c_r|, (E,): longer than D, since small parts weigh more."""
        sizes = self.shares.value.clamp_min(0).sqrt()
        return (sizes @ self.lengths) / sizes.sum(1)

    @property
    def gradient_depth(self) -> Tensor:
        """Σ r g_r² / Σ g_r² of the gradient's parts, (E,)."""
        require(self.gradient is not None, "the gradient was not measured; pass criterion or loss_fn.")
        assert self.gradient is not None
        return self.gradient.value @ self.lengths

    @property
    def based_on(self) -> str:
        """How many samples and residual blocks there were."""
        blocks = number_of(len(self.blocks.blocks), "residual block")
        return f"{number_of(self.samples, 'sample')}, {blocks}, {self.mode} mode"

    @property
    def yardstick(self) -> str:
        """A branch as large as its shortcut in every block, and without correlation, gives half the blocks."""
        blocks = len(self.blocks.blocks)
        always = len(self.layers) - 1 - blocks
        return f"branches as large as their shortcuts have an effective depth of {always + blocks / 2:g}"

    def plot(self) -> Any:
        """Draw shares by length with the effective depth marked: of the first eight networks, or of all the mean."""
        from skiplab.measurements import result_plots  # here, since measuring needs no matplotlib

        figure = super().plot()
        quantities = [name for name, _ in result_plots.drawn_quantities(self)]
        figure.axes[-1].set_xlabel("path length (residual blocks)")
        for panel, name in zip(figure.axes, quantities, strict=True):
            own = self.depth.value if name == "of the output" else self.gradient_depth
            places = own.tolist() if len(own) <= result_plots.MOST_LINES else [float(own.mean())]
            for number, place in enumerate(places):
                words = "" if number else "effective depth"
                panel.axvline(1 + place, label=words, zorder=1, **result_plots.MARK)
            result_plots.key(panel)
        return figure

    def _counted(self, networks: int) -> str:
        several = f"{networks} networks, " if networks > 1 else ""
        return f"{several}lengths 0 to {len(self.layers) - 1}"

    def __repr__(self) -> str:
        lines = super().__repr__().split("\n")
        networks = len(self.depth.value)
        depth = self.depth[0] if networks == 1 else Estimate.mean(self.depth.value, 0)
        told = [f"  effective depth: {depth}"]
        if self.gradient is not None:
            told.append(f"  effective depth of the gradient: {self.gradient_depth.mean().item():.3g}")
        opposed = self.cancellation.median().item()
        told.append(f"  cancellation: {opposed:.3g}{self._opposition(opposed)}")
        return "\n".join([lines[0], *told, *lines[1:]])

    @staticmethod
    def _opposition(cancellation: float) -> str:
        """What a cancellation above 1 means, for whoever has not read the definition."""
        if cancellation <= 1:
            return ""
        return ", the squared parts together over the squared output: parts of different lengths oppose each other"
