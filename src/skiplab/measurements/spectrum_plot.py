"""The figure of a Hessian's spectrum: the three shares with their intervals, and where the eigenvalues lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skiplab.figures.style import new_figure
from skiplab.measurements.result_plots import MARK, MOST_LINES, cap, colours, drawn, key

if TYPE_CHECKING:
    from skiplab.measurements.hessian_spectrum import HessianSpectrum

DEPTH = 1e-6  # of the highest density: what a logarithmic axis reaches down to; ours


def shares_and_density(spectrum: HessianSpectrum) -> Any:
    """Draw shares and density of every network, or of the first eight."""
    figure, axes = new_figure(2, width=7.2)
    shares, density = axes[0]
    count = min(len(spectrum.resolved), MOST_LINES)
    grid, height = spectrum.density.grid.cpu().numpy(), spectrum.density.density.cpu().numpy()
    names = list(spectrum.estimates)
    for network, (label, colour) in enumerate(colours(spectrum.member, count).items()):
        places = np.arange(len(names)) + 0.5 * (network - (count - 1) / 2) / count
        ends = [drawn(estimate[network]) for estimate in spectrum.estimates.values()]
        value, low, high = (np.concatenate(each) for each in zip(*ends, strict=True))
        shares.plot(places, value, "o", color=colour)
        shares.vlines(places, low, high, color=colour, linewidth=1.2)
        cap(shares, places, value, low, high, colour)
        density.plot(grid, height[network], color=colour, label=label, linewidth=1)
    shares.set_xticks(range(len(names)), names)
    shares.set(ylim=(-0.02, 1.02), xlim=(-0.5, len(names) - 0.5), ylabel="share of eigenvalues")
    exact = spectrum.method == "exact"
    how = "eigenvalues" if exact else "the quadrature's guess"
    density.set_title(f"{how}, smoothed by {spectrum.density.width:.2g}", fontsize="small")
    density.set(yscale="log", xlabel="λ", ylabel="density of eigenvalues")
    top = float(height[:count].max())
    density.set_ylim(DEPTH * top, 2 * top)
    density.axvline(0, zorder=1, **MARK)
    key(density)
    figure.suptitle(spectrum.title)
    return figure
