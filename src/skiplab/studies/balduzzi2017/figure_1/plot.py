"""Gradients along a line, each over its covariance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.reproduction.results import matching
from skiplab.studies.balduzzi2017.line_gradients import NOISES, measured
from skiplab.studies.balduzzi2017.line_networks import Network
from skiplab.studies.balduzzi2017.palette import COVARIANCE_LABEL, COVARIANCE_MAP, NOISE, network_colour

_BRIGHTEST = 3.0  # covariances in units of the variance; the few beyond are drawn as this


def draw(results: Results, networks: Mapping[str, Network]) -> Figure:
    """Draw the first network of each kind by its title, then both noises."""
    columns = {title: _first(results, network) for title, network in networks.items()}
    columns |= {f"{kind.capitalize()} noise": _first(results, kind) for kind in NOISES}
    colours = [network_colour(network.beta if network.skip else None) for network in networks.values()]
    return gradient_panels(columns, [*colours, *(NOISE[kind] for kind in NOISES)])


def _first(results: Results, what: Network | str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs, and the gradient or the noise there, in the first run."""
    rows = measured(results, what, "gradient")
    rows = matching(rows, run=rows["run"].min())
    return rows["x"].to_numpy(), rows["value"].to_numpy()


def gradient_panels(columns: Mapping[str, tuple[np.ndarray, np.ndarray]], colours: Sequence[str]) -> Figure:
    """Draw each column's gradient against its inputs, (x, g), over the image of |(g − ḡ)(g − ḡ)ᵀ| / σ²."""
    figure, axes = new_figure(len(columns), rows=2, width=PAGE_WIDTH, height=3.4, grid=False)
    axes[0, 0].get_gridspec().set_height_ratios((1.25, 1.0))  # images are square, gradients need not be
    image = None
    for place, ((title, (x, series)), colour) in enumerate(zip(columns.items(), colours, strict=True)):
        top, bottom = axes[:, place]
        top.plot(x, series, color=colour, linewidth=0.6)
        top.set_title(title.replace(" ", "\n", 1), fontsize=7.5, loc="center")
        top.set_xlim(x[0], x[-1])
        top.locator_params(axis="y", nbins=4)
        ends = (x[0], x[-1], x[-1], x[0])
        centred = series - series.mean()
        variance = centred.var()
        # A gradient without variance has no covariance to show; zero is drawn rather than 0/0.
        covariance = np.abs(np.outer(centred, centred)) / (variance if variance > 0 else 1.0)
        image = bottom.imshow(
            covariance, cmap=COVARIANCE_MAP, vmin=0, vmax=_BRIGHTEST, extent=ends, interpolation="nearest"
        )
        bottom.set_yticks([x[0], 0, x[-1]] if place == 0 else [])
        for ax in (top, bottom):
            ax.set_xticks([x[0], 0, x[-1]])
            ax.set_xlabel("input $x$", fontsize=7.5, labelpad=2)
            ax.tick_params(labelsize=6.5)
        panel_letter(top, "abcdefgh"[place])
    axes[0, 0].set_ylabel("gradient $df/dx$", fontsize=7.5)
    axes[1, 0].set_ylabel("input $x$", fontsize=7.5)
    if image is not None:
        bar = figure.colorbar(image, ax=list(axes[1]), fraction=0.015, pad=0.01, extend="max")
        bar.ax.tick_params(labelsize=6.5)
        bar.set_label(COVARIANCE_LABEL, fontsize=7)
    return figure
