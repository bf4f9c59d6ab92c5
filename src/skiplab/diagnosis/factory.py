"""Functions that make networks, called so that a seed means something whatever they draw from."""

from __future__ import annotations

import copy
import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from skiplab.checks import Refused, SkiplabError, require, seeded
from skiplab.randomness import derive, torch_generator
from skiplab.subjects.untouched import same_surroundings


@dataclass(frozen=True)
class Factory:
    """A function that makes a network, by name; ``factory(seed)`` calls it.

    A parameter ``seed`` or ``generator`` of the function is filled. All others draw from the global random streams of
    Python, numpy and torch, which are seeded for the call and put back after it. A network in place of a function is
    copied: all seeds have its parameters.
    """

    name: str
    make: Callable[..., Any] | nn.Module

    def __post_init__(self) -> None:
        if isinstance(self.make, nn.Module):
            return
        require(
            callable(self.make),
            f"{self.name} is a {type(self.make).__name__}; give a function that makes a network.",
        )
        needed = [
            name
            for name, each in _parameters(self.make).items()
            if each.default is each.empty and each.kind in _NAMED and name not in _DRAWN
        ]
        require(
            not needed,
            f"{self.name} needs {', '.join(needed)}; give a function that takes nothing, or seed, or generator.",
        )

    def __call__(self, seed: int = 0) -> nn.Module:
        """The network of a seed: the same for the same seed, on the CPU or where the function puts it."""
        made = self.made(seed)
        if not isinstance(made, nn.Module):
            raise Refused(f"{self.name} makes a {type(made).__name__}; let it return a torch.nn.Module.")
        return made

    def made(self, seed: int = 0) -> Any:
        """Whatever the function returns for a seed: a network, or more than that."""
        seeded(seed)
        if isinstance(self.make, nn.Module):
            return copy.deepcopy(self.make)
        drawn = {"seed": seed, "generator": torch_generator(int(seed), "network")}
        taken = {name: value for name, value in drawn.items() if name in _parameters(self.make)}
        try:
            with seeded_globally(derive(int(seed), "network")):
                return self.make(**taken)
        except SkiplabError:
            raise
        except (Exception, SystemExit) as problem:
            said = str(problem).strip().partition("\n")[0]
            told = f"{type(problem).__name__}{f', {said}' if said else ''}"
            raise Refused(f"{self.name} fails when called: {told}; mend it first.") from problem


_DRAWN = ("seed", "generator")
_NAMED = (
    inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY,
)  # fmt: skip


def _parameters(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some built-in ones have no signature
        return {}


@contextmanager
def seeded_globally(seed: int) -> Iterator[None]:
    """Seed the global random streams for foreign code that draws from them; put them back whatever happens."""
    cards = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with same_surroundings(), torch.random.fork_rng(devices=cards):
        # Not torch.manual_seed, which would also seed devices whose state is not put back.
        torch.default_generator.manual_seed(seed)
        for card in cards:
            torch.cuda.default_generators[card].manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002 - what users' factories draw from
        yield
