"""Check that healthy networks of the cases train, that sick ones do not, and find which do so on changed data.

``PYTHONPATH=src:tests/diagnosis python -m cases.check_healthy development held_out`` prints the table as CSV, which
is kept in ``healthy.csv`` beside this file; with networks or kinds of rows named behind the lists, only these are
trained.

A network is trained by Adam for up to 60 steps on its four batches (64 samples) in turn. It trains if the mean loss
over them falls below 0.7 of what it was, and below 0.7 of what the best constant answer has (``chance``). Learning
rates are tried one after the other until one of them does it; otherwise the row tells of the best of them.
"""

from __future__ import annotations

import copy
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import torch
from cases.lists import Control, SickCase, sick_network, spoilt
from cases.networks import Network, build
from torch import nn

from skiplab.randomness import derive

RATES = (1e-3, 3e-3, 3e-4)
LOOKS, FALLEN = (20, 40, 60), 0.7
MADE: dict[str, Callable[[Any], Network]] = {"sick": sick_network, "changed": spoilt}
COLUMNS = (
    *("list", "kind", "case", "before", "chance", "after"),
    *("steps", "rate", "seconds", "verdict"),
)


@dataclass(frozen=True)
class Training:
    """The mean loss after some steps at a learning rate."""

    loss: float
    steps: int
    rate: float


def mean_loss(network: Network, model: nn.Module) -> float:
    """The mean loss over a network's batches in training mode, from which nothing is kept."""
    own = copy.deepcopy(model).train()
    with torch.no_grad():
        return sum(float(network.loss(own, batch)) for batch in network.batches) / len(network.batches)


def chance(network: Network) -> float:
    """The loss of the best answer that is the same for every sample: the labels' entropy, or the targets' variance.

    For a language model the words' entropy, whatever comes before them.
    """
    named = isinstance(network.batch, dict)
    target = torch.cat([batch["labels"] if named else batch[1] for batch in network.batches])
    if target.is_floating_point():
        return float(target.var(0, unbiased=False).mean())
    shares = target.flatten().bincount().float() / target.numel()
    return float(torch.special.entr(shares).sum())


def trained(network: Network, rate: float, target: float, seed: int) -> Training:
    """Train a copy until its loss is below the target, or for as many steps as there are."""
    model = copy.deepcopy(network.model).train()
    optimiser = torch.optim.Adam(model.parameters(), rate)
    found = Training(math.inf, 0, rate)
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(derive(seed, "cases", "dropout"))
        for step in range(1, LOOKS[-1] + 1):
            optimiser.zero_grad()
            network.loss(model, network.batches[step % len(network.batches)]).backward()
            optimiser.step()
            if step in LOOKS:
                found = Training(mean_loss(network, model), step, rate)
                if found.loss < target:
                    break
    return found


def best_training(network: Network, target: float, seed: int) -> Training:
    """The first training that reaches the target, or the one with the lowest loss."""
    tried: list[Training] = []
    for rate in RATES:
        tried.append(trained(network, rate, target, seed))
        if tried[-1].loss < target:
            return tried[-1]
    return min(tried, key=lambda each: math.inf if math.isnan(each.loss) else each.loss)


def planned(which: str) -> list[tuple[str, Any]]:
    """The controls, networks of other cases that are in no control (as they are), the sick, and changed data."""
    cases = import_module(f"cases.{which}")
    controls = [*cases.CONTROLS, *(Control(residual, seed) for _, residual, seed in cases.PAIRS)]
    healthy = {case.network for case in controls}
    sick = [*cases.SICK, *(SickCase(plain, seed, "deep and plain") for plain, _, seed in cases.PAIRS)]
    found: list[tuple[str, Any]] = [("healthy", case) for case in controls]
    found += [("before planting", case) for case in cases.PLANTED if case.network not in healthy]
    further = {case.network: case.seed for case in reversed(cases.CHANGED) if case.network not in healthy}
    found += [("before changing", Control(network, seed)) for network, seed in further.items()]
    found += [("sick", case) for case in sick]
    return found + [("changed", case) for case in cases.CHANGED]


def rows(which: str, only: set[str]) -> Iterator[tuple[object, ...]]:
    """One row per network that is trained."""
    for kind, case in planned(which):
        if only and case.network not in only and kind not in only:
            continue
        since = time.perf_counter()
        made = MADE.get(kind, lambda case: build(case.network, case.seed))(case)
        before, constant = mean_loss(made, made.model), chance(made)
        target = FALLEN * min(before, constant)
        if before < FALLEN * constant:  # it has learned already
            target, after = FALLEN * constant, Training(before, 0, 0.0)
        else:
            after = best_training(made, target, case.seed)
        seconds = f"{time.perf_counter() - since:.1f}"
        verdict = "trains" if after.loss < target else "does not train"
        losses = (f"{loss:.4g}" for loss in (before, constant, after.loss))
        yield which, kind, case.name, *losses, after.steps, after.rate, seconds, verdict


def _kernels_of_torchvision() -> object:
    """As tests/conftest.py does: torchvision asks for two operators that a CPU build of torch has not."""
    if hasattr(torch.ops.torchvision, "nms"):
        return None
    schemas = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        schemas.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return schemas


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
