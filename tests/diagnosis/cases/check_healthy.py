"""Check that the healthy networks of the cases train, and how the sick ones do: a table of losses.

``PYTHONPATH=src:tests/diagnosis python -m cases.check_healthy development held_out`` prints the table as CSV, which
is kept in ``healthy.csv`` beside this file; with networks named behind the lists, only these are trained.

A healthy network is trained by Adam for 60 steps, at one learning rate after the other until the mean loss over its
four batches (64 samples) has fallen to less than 0.7 of what it was. Sick networks are trained for 50 steps at all
rates, and the best is told.
"""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import torch
from cases.lists import Control, SickCase, sick_network
from cases.networks import Network, build
from torch import nn

from skiplab.randomness import derive

RATES = (1e-3, 3e-3, 3e-4)
STEPS, SICK_STEPS, FALLEN = 60, 50, 0.7
COLUMNS = (
    "list",
    "kind",
    "case",
    "network",
    "seed",
    "before",
    "after",
    "share",
    "rate",
    "seconds",
    "verdict",
)


def mean_loss(network: Network, model: nn.Module) -> float:
    """The mean loss over a network's batches in training mode, from which nothing is kept."""
    own = copy.deepcopy(model).train()
    with torch.no_grad():
        return sum(float(network.loss(own, batch)) for batch in network.batches) / len(network.batches)


def trained(network: Network, rate: float, steps: int, seed: int) -> float:
    """The mean loss of a copy after some steps of Adam on the network's batches in turn."""
    model = copy.deepcopy(network.model).train()
    optimiser = torch.optim.Adam(model.parameters(), rate)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive(seed, "cases", "dropout"))
        for step in range(steps):
            optimiser.zero_grad()
            network.loss(model, network.batches[step % len(network.batches)]).backward()
            optimiser.step()
        return mean_loss(network, model)


def losses(network: Network, seed: int, steps: int, *, stop: bool) -> tuple[float, float, float]:
    """The loss before training, the lowest after it, and the rate at which it came about."""
    before = mean_loss(network, network.model)
    best, best_rate = math.inf, RATES[0]
    for rate in RATES:
        after = trained(network, rate, steps, seed)
        if after < best:
            best, best_rate = after, rate
        if stop and best < FALLEN * before:
            break
    return before, best, best_rate


def _kernels_of_torchvision() -> object:
    """As tests/conftest.py does: torchvision asks for two operators that a CPU build of torch has not."""
    if hasattr(torch.ops.torchvision, "nms"):
        return None
    schemas = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        schemas.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return schemas


def rows(which: str, only: set[str]) -> Iterator[tuple[object, ...]]:
    """One row per healthy control, per other network in which a defect is planted, and per sick network.

    Networks are trained before a defect is planted, sick ones after it.
    """
    cases = import_module(f"cases.{which}")
    controls = {case.network for case in cases.CONTROLS}
    planned: list[tuple[str, Any]] = [("healthy", case) for case in cases.CONTROLS]
    planned += [("healthy", Control(residual, seed)) for _, residual, seed in cases.PAIRS]
    planned += [("to be planted", case) for case in cases.PLANTED if case.network not in controls]
    planned += [("sick", case) for case in cases.SICK]
    planned += [("sick", SickCase(plain, seed, "")) for plain, _, seed in cases.PAIRS]
    for kind, case in planned:
        if only and case.network not in only:
            continue
        since, sick = time.perf_counter(), kind == "sick"
        made = sick_network(case) if sick else build(case.network, case.seed)
        before, after, rate = losses(made, case.seed, SICK_STEPS if sick else STEPS, stop=not sick)
        seconds = f"{time.perf_counter() - since:.1f}"
        verdict = "trains" if after < FALLEN * before else "does not train"
        shown = f"{before:.4g}", f"{after:.4g}", f"{after / before:.2f}"
        yield which, kind, case.name, case.network, case.seed, *shown, rate, seconds, verdict


def main(arguments: list[str]) -> None:
    """Train the networks of the lists named and print the table."""
    torch.set_num_threads(1)
    kept = _kernels_of_torchvision()
    lists = [name for name in arguments if name in ("development", "held_out")]
    print(*COLUMNS, sep=",")
    for which in lists:
        for row in rows(which, set(arguments) - set(lists)):
            print(*row, sep=",", flush=True)
    del kept


if __name__ == "__main__":
    main(sys.argv[1:])
