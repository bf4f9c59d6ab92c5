"""One colour and one name for each network and noise of balduzzi2017, the same in all its figures.

A network is given by its β; None is the feedforward network, which elsewhere is called plain.
"""

from __future__ import annotations

import zlib

from skiplab.figures.colours import colour_of

NOISE = {"brown": "#7F6000", "white": "#777777"}
COVARIANCE_MAP = "magma"  # of |covariance| / σ² in all figures of the paper
COVARIANCE_LABEL = "|covariance| / σ²"
_RESNETS = {1.0: colour_of("residual"), 0.1: "#56B4E9"}  # one hue, lighter for the smaller β
_OTHERS = ("#332288", "#44AA99", "#5F6B7A")


def network_colour(beta: float | None) -> str:
    """Return a network's hex colour; a β that the paper does not have gets one that depends on it alone."""
    if beta is None:
        return colour_of("plain")
    return _RESNETS.get(beta) or _OTHERS[zlib.crc32(f"{beta:g}".encode()) % len(_OTHERS)]


def network_name(beta: float | None) -> str:
    """Return a network's name as titles and legends show it: "Feedforward", "Resnet, β = .1"."""
    return "Feedforward" if beta is None else f"Resnet, {beta_words(beta)}"


def beta_words(beta: float) -> str:
    """Return "β = 1" or "β = .1", as the text writes it."""
    return f"β = {beta:g}".replace("= 0.", "= .")
