"""Fully connected ensembles in Triton: a training step as a few kernels, where network and device allow it.

What decides is the network, the type of its parameters and the device, never how long a run is: a trial's settings
and its device say which arithmetic it had. Where kernels do not serve, the portable path gives the same numbers to
rounding.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from skiplab.ensembles.ensemble import Ensemble
from skiplab.ensembles.fused.shape import shape_of
from skiplab.ensembles.fused.tiles import tiles_for

if TYPE_CHECKING:
    from skiplab.ensembles.fused.passes import Passes

__all__ = ["fused_passes"]

ADAPTED = (8, 0)  # the first compute capability with bfloat16 and tf32


def fused_passes(ensemble: Ensemble, inputs: Tensor, labels: Tensor, *, mixed: bool) -> Passes | None:
    """The kernels' passes on samples (N, inputs) with labels (N,), or None where the portable path computes."""
    shape = shape_of(ensemble.skeleton)
    if shape is None or inputs.ndim != 2 or labels.is_floating_point() or not _runs_on(ensemble):
        return None
    tiles = tiles_for(shape, torch.bfloat16 if mixed else ensemble.rows.dtype, ensemble.device)
    if tiles is None:
        return None
    from skiplab.ensembles.fused.passes import Passes

    return Passes(ensemble, shape, inputs, labels, mixed=mixed, tiles=tiles)


def _runs_on(ensemble: Ensemble) -> bool:
    """Whether Triton is here and compiles for the device; its interpreter takes tensors of a CPU."""
    if importlib.util.find_spec("triton") is None:
        return False
    if ensemble.device.type == "cuda":
        capable = torch.cuda.get_device_capability(ensemble.device) >= ADAPTED
        return capable and ensemble.rows.dtype == torch.float32 and torch.version.cuda is not None
    from triton import knobs

    return bool(ensemble.device.type == "cpu" and knobs.runtime.interpret)
