"""Explicit random streams: every draw names what it is for, and no draw touches global state.

A stream is named by parts, say (seed, "shuffle", epoch). The same parts give the same stream on every
machine, so a training run can be resumed at any epoch without saving a generator's state.

A study's own seed is not a run's: it names a stream of run seeds (``run_seeds``), so that a rerun with another seed
is another sample.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from skiplab.checks import at_least, require, seeded

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    import torch

# How many run seeds a study's seed has: chosen by us, so that 1,000,000 × seed + run can be read at a glance.
SEEDS_PER_STREAM = 1_000_000
# Tables that join trials with and without seeds hold them as float64, which is exact up to here.
_LAST_SEED = 2**53 // SEEDS_PER_STREAM - 1

Role = Literal["all", "decide", "search"]
# Runs that only choose gains and strengths are kept apart from those that decide a verdict; a study that searches
# nothing has the whole stream. The places of seed 0 are those of what is published.
PLACES: dict[Role, range] = {"all": range(SEEDS_PER_STREAM), "decide": range(500), "search": range(500, 1000)}


def run_seeds(seed: int, runs: int, *, role: Role = "all") -> range:
    """Return the seeds of a study's runs; two study seeds have none in common, and seed 0 has 0, 1, 2, ….

    More runs with the same seed begin with those of fewer.
    """
    at_least("seed", seed, 0)
    require(seed <= _LAST_SEED, f"seed is {seed}, but must be at most {_LAST_SEED}.")
    place = PLACES[role]
    what = {"all": "", "decide": " that decide", "search": " that search"}[role]
    most = f"runs is {runs}, but a seed has room for {len(place)} runs{what}; ask for fewer, or for another seed too."
    require(runs <= len(place), most)
    first = SEEDS_PER_STREAM * seed + place.start
    return range(first, first + runs)


def member_seeds(seed: int | Sequence[int], size: int) -> list[int]:
    """The seed of each network of an ensemble: one for all of them, or as they are given."""
    seeds: list[int] = []
    with suppress(TypeError):  # a number
        seeds = [] if isinstance(seed, str | bytes) else list(seed)  # type: ignore[arg-type]
    seeds = seeds or [seed] * size  # type: ignore[list-item]
    for each in seeds:
        seeded(each)
    many = f"{len(seeds)} seeds were given for {size} networks; give one for all, or one for each."
    require(len(seeds) == size, many)
    return seeds


def derive(*parts: int | str) -> int:
    """Hash the parts of a stream's name to a 63-bit seed."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def torch_generator(*parts: int | str, device: str | torch.device = "cpu") -> torch.Generator:
    """Return a fresh torch generator for the stream that the parts name."""
    import torch

    return torch.Generator(device=device).manual_seed(derive(*parts))


def numpy_generator(*parts: int | str) -> np.random.Generator:
    """Return a fresh numpy generator for the stream that the parts name."""
    import numpy as np

    return np.random.default_rng(derive(*parts))
