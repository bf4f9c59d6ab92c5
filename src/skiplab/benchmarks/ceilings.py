"""What a device reaches at best, measured in the same run: one large matrix product, and one large copy.

Data sheets promise more than any program gets; a share of what a plain large product reaches says how far a program
is from what could be had.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass

ROUNDS = 5
SIDES = {"cuda": 8192, "cpu": 1024}  # of the square matrices: large enough that a longer side is no faster
COPIED = {"cuda": 2**31, "cpu": 2**27}  # bytes, beyond any cache


@dataclass(frozen=True)
class Ceiling:
    """Operations per second of a large matrix product in a precision, and bytes per second of a large copy."""

    precision: str
    flops: float
    traffic: float


def study_precision(device: str) -> str:
    """How trials multiply float32 matrices on a device: see ``reproduction.arithmetic``."""
    return "tf32" if device.startswith("cuda") else "float32"


def measure_ceiling(device: str, precision: str) -> Ceiling:
    """Time a large product and a large copy, the best of some rounds each, in the arithmetic that is set."""
    import torch

    kind = device.partition(":")[0]
    side, dtype = SIDES[kind], torch.bfloat16 if precision == "bfloat16" else torch.float32
    one, other = (torch.full((side, side), 0.5, dtype=dtype, device=device) for _ in range(2))
    source = torch.ones(COPIED[kind], dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    product = _best(lambda: torch.matmul(one, other), device)
    copy = _best(lambda: target.copy_(source), device)
    return Ceiling(precision, 2 * side**3 / product, 2 * COPIED[kind] / copy)  # a copy reads and writes


def wait_for(device: str) -> None:
    """Wait until a GPU has done what was asked of it; a CPU has, once a call returns."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.synchronize(device)


def fresh_start(device: str) -> None:
    """Give back a GPU's memory, and forget what was compiled for the shapes so far."""
    if device.startswith("cuda"):
        import torch

        gc.collect()
        # As the training loop does: torch computes eagerly once a function was compiled for eight shapes.
        torch.compiler.reset()
        torch.cuda.empty_cache()


def _best(run: Callable[[], object], device: str) -> float:
    seconds = []
    for _ in range(1 + ROUNDS):
        wait_for(device)
        started = time.perf_counter()
        run()
        wait_for(device)
        seconds.append(time.perf_counter() - started)
    return min(seconds[1:])  # the first one warms up
