"""Fully connected ensembles in Triton: a training step as a few kernels, where network and device allow it.

They are taken unasked on a GPU in mixed precision, where they are twice as fast as torch's own operations compiled
(H200, 30 layers of 128 units). Products of float32 are left to those, the portable path, unless kernels are asked for.
So the network, mixed precision and the device decide, never how long a run is: a trial's settings and its device say
which arithmetic it had, and whatever was trained before there were kernels keeps its own.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from skiplab.checks import Refused
from skiplab.ensembles.ensemble import Ensemble
from skiplab.ensembles.fused.arithmetic import arithmetic_of
from skiplab.ensembles.fused.shape import Shape, shape_of
from skiplab.ensembles.fused.tiles import tiles_for

if TYPE_CHECKING:
    from skiplab.ensembles.fused.passes import Passes

__all__ = ["fused_passes"]

CAPABLE = (8, 0)  # the first compute capability with bfloat16 and tf32


def fused_passes(
    ensemble: Ensemble, inputs: Tensor, labels: Tensor, *, mixed: bool = False, wanted: bool | None = None
) -> Passes | None:
    """The kernels' passes on samples (N, inputs) with labels (N,), or None where the portable path computes.

    ``wanted`` None takes them in mixed precision on a GPU; True always, or refuses; False never.
    """
    if wanted is False or (wanted is None and not (mixed and ensemble.device.type == "cuda")):
        return None
    shape = shape_of(ensemble.skeleton)
    arithmetic = arithmetic_of(mixed, ensemble.rows.dtype)
    tiles = tiles_for(shape, arithmetic, ensemble.device) if shape else None
    obstacle = _obstacle(ensemble, shape, inputs, labels) or (None if tiles else "more shared memory")
    if shape and tiles and not obstacle:
        from skiplab.ensembles.fused.passes import Passes

        return Passes(ensemble, shape, inputs, labels, arithmetic=arithmetic, tiles=tiles)
    if wanted:
        raise Refused(f"fused passes need {obstacle}; leave out fused=True for the portable path.")
    return None


def _obstacle(ensemble: Ensemble, shape: Shape | None, inputs: Tensor, labels: Tensor) -> str | None:
    """What is missing, in words, or None."""
    device = ensemble.device
    if shape is None:
        return (
            f"a fully connected network of ReLUs up to 128 wide, not this {type(ensemble.skeleton).__name__}"
        )
    if inputs.ndim != 2 or labels.is_floating_point():
        return "samples in rows, with classes as labels"
    if importlib.util.find_spec("triton") is None:
        return "Triton (pip install 'skiplab[fused]')"
    from skiplab.ensembles.fused.kernels import INTERPRETED

    if device.type == "cuda" and torch.version.cuda and torch.cuda.get_device_capability(device) >= CAPABLE:
        return None if ensemble.rows.dtype == torch.float32 else "parameters in float32"
    return None if INTERPRETED else "an NVIDIA GPU of compute capability 8.0 at least"
