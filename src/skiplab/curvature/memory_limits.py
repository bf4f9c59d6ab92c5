"""How many steps memory holds: fewer than usual are taken and said, more than fit are refused with what fits."""

from __future__ import annotations

import math
from dataclasses import replace

import torch
from torch import Tensor

from skiplab import linear_algebra as la
from skiplab.checks import require
from skiplab.curvature.spectrum_methods import Exact, Lanczos, Moments, SpectrumMethod

MOST_STEPS = 320  # of Lanczos where memory holds them and nobody asks for others; ours
# Numbers in all probes together that make their noise small: at 99 % a fraction of a half is then known to .002.
ENOUGH_NUMBERS = 830_000
MOST_PROBES = 10
SHORT_STEPS = 30  # Lanczos steps from one probe that find the extremes for `moments`


def lanczos_for(dimension: int) -> Lanczos:
    """Lanczos with as many probes as a network of this size needs: a large one has enough numbers in one probe."""
    return Lanczos(probes=min(MOST_PROBES, max(1, math.ceil(ENOUGH_NUMBERS / dimension))))


def short_steps(method: Moments, dimension: int, like: Tensor) -> int:
    """How many steps look for the extremes beside the moments, of vectors like the parameters."""
    budget = la.budget_of(method.memory, like.device)
    fitting = la.fitting_steps(dimension, storage=like.dtype, budget=budget)
    return max(1, min(SHORT_STEPS, dimension - method.deflate, fitting))


def vectors_that_fit(
    argument: str, asked: int | None, usual: int, held: la.Held, device: torch.device, *, least: int = 1
) -> tuple[int, str]:
    """The steps or products that were asked for, else as usual, or what fits with a remark."""
    budget = la.budget_of(None, device)
    fitting = held.fitting(budget)
    unit = argument.removeprefix("max_")  # steps or products
    allowed = f"{la.in_words(budget)} may be used"
    require(
        fitting >= least,
        f"{least} {unit.removesuffix('s') + ' takes' if least == 1 else unit + ' take'} "
        f"{la.in_words(held.bytes(least))}, and {allowed}; name fewer layers in layers.",
    )
    if asked is not None:
        require(
            asked <= fitting,
            f"{argument} is {asked}, which takes {la.in_words(held.bytes(asked))}, and {allowed}; give "
            f"{argument}={fitting}, or name fewer layers in layers.",
        )
        return asked, ""
    if usual <= fitting:
        return usual, ""
    return fitting, f"at most {fitting} {unit} instead of {usual}, since more do not fit where {allowed}"


def within_memory(method: SpectrumMethod, dimension: int, like: Tensor) -> tuple[SpectrumMethod, str]:
    """The method with the steps it may take, and a remark where these are fewer than they would be.

    The parameters are of the type and on the device of ``like``, and so is the basis that Lanczos keeps.
    """
    if isinstance(method, Exact):
        la.require_room(dimension, 1, like.device, remedy='method="lanczos"')
        return method, ""
    budget = la.budget_of(method.memory, like.device)
    fitting = la.fitting_steps(dimension, storage=like.dtype, budget=budget)
    least = la.lanczos_bytes(1, 1, dimension, 1, storage=like.dtype)
    require(
        fitting >= 1,
        f"one Lanczos step of {dimension:,} parameters takes {la.in_words(least)}, and {la.in_words(budget)} may be "
        f"used; name fewer layers in layers, or give memory={least} (bytes).",
    )
    if isinstance(method, Moments):
        return method, ""
    if method.max_steps is not None:
        needed = la.lanczos_bytes(1, 1, dimension, min(method.max_steps, dimension), storage=like.dtype)
        require(
            min(method.max_steps, dimension) <= fitting,
            f"max_steps is {method.max_steps}, which takes {la.in_words(needed)} for {dimension:,} parameters, and "
            f"{la.in_words(budget)} may be used; give max_steps={fitting}, or memory={needed} (bytes).",
        )
        return method, ""
    # The budget is kept: the network's own passes take some of what is free before it would be asked for again.
    most = min(MOST_STEPS, fitting)
    limited = replace(method, max_steps=most, memory=budget)
    if most >= min(MOST_STEPS, dimension):
        return limited, ""
    return limited, (
        f"at most {most} steps instead of {MOST_STEPS}, since more do not fit into {la.in_words(budget)} of memory; "
        "fewer layers leave room for more"
    )
