"""How much memory Lanczos, extremes and traces take, said beforehand, and how to split a run so that it fits.

The basis rules: re-orthogonalising P = 873,482 × 80 steps × 10 probes takes 5.6 GB per network in float64, and half
of that for a network in float32, whose basis has its type (``storage``). A run is split over probes first, which
leaves every product as wide as it can be over networks, then over networks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

import torch

from skiplab.checks import Refused, at_least, require
from skiplab.cuda_graphs import held_bytes

SHARE = 0.5  # of what is free: the operator's own passes need the rest
# float64 vectors per probe beside the basis, as measured on a GPU: two of the recurrence, the image, its product with
# the basis, a copy, and one that the operator's answer takes while it is converted.
WORKING_VECTORS = 6


@dataclass(frozen=True)
class MemoryPlan:
    """A run in parts: so many networks and probes at a time, and the bytes that one part takes."""

    members: int
    probes: int
    steps: int
    dimension: int
    members_at_once: int
    probes_at_once: int
    bytes: int
    budget: int

    @property
    def parts(self) -> int:
        """How many runs of Lanczos it takes."""
        return -(-self.members // self.members_at_once) * -(-self.probes // self.probes_at_once)

    def slices(self) -> Iterator[tuple[slice, slice]]:
        """Yield (networks, probes) of every part, networks outermost."""
        for member in range(0, self.members, self.members_at_once):
            for probe in range(0, self.probes, self.probes_at_once):
                yield (
                    slice(member, min(member + self.members_at_once, self.members)),
                    slice(probe, min(probe + self.probes_at_once, self.probes)),
                )

    def __str__(self) -> str:
        times = "in one part" if self.parts == 1 else f"in each of {self.parts} parts"
        return (
            f"Lanczos takes {in_words(self.bytes)} {times}: {self.members_at_once} × {self.probes_at_once} probes × "
            f"{self.steps} steps × {self.dimension:,} numbers, within {in_words(self.budget)}."
        )


def lanczos_bytes(
    members: int, probes: int, dimension: int, steps: int, *, storage: torch.dtype = torch.float64
) -> int:
    """Bytes that Lanczos holds at its largest: the basis and a few working vectors per probe."""
    return members * probes * dimension * (steps * storage.itemsize + _working_bytes(storage))


def _working_bytes(storage: torch.dtype) -> int:
    """Bytes per number beside the basis: where its type is not float64, one more vector is a copy in that type."""
    return WORKING_VECTORS * 8 + (0 if storage == torch.float64 else storage.itemsize)


@dataclass(frozen=True)
class Held:
    """What a method holds at its largest: so many bytes per step or product, and so many besides."""

    each: int
    beside: int

    def bytes(self, count: int) -> int:
        """The bytes of so many steps or products."""
        return count * self.each + self.beside

    def fitting(self, budget: int) -> int:
        """How many steps or products fit into so many bytes; 0 where not even one does."""
        return max(0, (budget - self.beside) // self.each)


def extremes_held(members: int, dimension: int, block: int, dtype: torch.dtype) -> Held:
    """What ``extreme_eigenvalues`` holds: its basis in the operator's type, and blocks of vectors besides.

    These are 3 for a single vector, 5 for a block of several, and 1 more where float64 draws are cast to another
    type, as measured on a CPU.
    """
    each = dtype.itemsize * members * block * dimension
    return Held(each, ((3 if block == 1 else 5) + (dtype != torch.float64)) * each)


def trace_held(members: int, dimension: int, dtype: torch.dtype) -> Held:
    """What ``xtrace`` holds: 4 float64 vectors per two products, and one in the operator's type if it is another."""
    pair = 4 * 8 + (0 if dtype == torch.float64 else dtype.itemsize)
    return Held(-(-members * dimension * pair // 2), 0)


_ALLOWED: ContextVar[int | None] = ContextVar("allowed bytes", default=None)


@contextmanager
def allowing(allowed: int | None) -> Iterator[None]:
    """Let nothing meanwhile count on more than so many bytes, however many are free; None for no such limit."""
    token = _ALLOWED.set(allowed)
    try:
        yield
    finally:
        _ALLOWED.reset(token)


def available_bytes(device: torch.device | str = "cpu") -> int:
    """Bytes free on a device now, or those that ``allowing`` allows, if these are fewer."""
    free, allowed = _free_bytes(torch.device(device)), _ALLOWED.get()
    return free if allowed is None else min(free, allowed)


def _free_bytes(device: torch.device) -> int:
    """Unclaimed memory of the GPU, or what Linux says programs may still take."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        # What torch has reserved and not handed out is free to us as well, but for what graphs hold.
        reserved, taken = torch.cuda.memory_reserved(device), torch.cuda.memory_allocated(device)
        return free + reserved - taken - held_bytes(device)
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    pages = "SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in os.sysconf_names else "SC_PHYS_PAGES"
    return os.sysconf(pages) * os.sysconf("SC_PAGE_SIZE")


def total_bytes(device: torch.device | str = "cpu") -> int:
    """Bytes that a device has, whoever uses them now."""
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def budget_of(budget: int | None, device: torch.device | str = "cpu") -> int:
    """The bytes that may be used: those given, or half of what is free."""
    budget = int(SHARE * available_bytes(device)) if budget is None else budget
    require(budget > 0, f"the budget is {budget} bytes; give a positive number.")
    return budget


def fitting_steps(
    dimension: int, *, storage: torch.dtype = torch.float64, budget: int, product_bytes: int = 0
) -> int:
    """How many Lanczos steps of one probe fit into so many bytes; 0 where not even one does."""
    room = (budget - product_bytes) // dimension - _working_bytes(storage)
    return max(0, room // storage.itemsize)


def plan(
    members: int,
    probes: int,
    dimension: int,
    steps: int,
    *,
    storage: torch.dtype = torch.float64,
    budget: int | None = None,
    device: torch.device | str = "cpu",
    product_bytes: int = 0,
) -> MemoryPlan:
    """Split members × probes so that every part stays within ``budget`` bytes (default: half of what is free).

    ``product_bytes`` is what the operator needs for one vector of one member while it multiplies. Give a budget
    where results must not depend on the machine: sums in parts of another size round differently in the last digit.
    """
    for name, value in (
        ("members", members),
        ("probes", probes),
        ("dimension", dimension),
        ("steps", steps),
    ):
        at_least(name, value, 1)
    budget = budget_of(budget, device)
    one = lanczos_bytes(1, 1, dimension, steps, storage=storage) + product_bytes
    if one > budget:
        most = fitting_steps(dimension, storage=storage, budget=budget, product_bytes=product_bytes)
        remedy = f"take at most {most} steps or " if most else ""
        raise Refused(
            f"one probe of {dimension:,} numbers × {steps} steps takes {in_words(one)} of {in_words(budget)}; "
            f"{remedy}raise the budget."
        )
    at_once = budget // one
    members_at_once = min(members, at_once)
    probes_at_once = min(probes, at_once // members_at_once)
    # Even parts: 10 probes of which 9 fit are better 5 + 5 than 9 + 1.
    probes_at_once = -(-probes // -(-probes // probes_at_once))
    members_at_once = -(-members // -(-members // members_at_once))
    total = members_at_once * probes_at_once * one
    return MemoryPlan(members, probes, steps, dimension, members_at_once, probes_at_once, total, budget)


def in_words(count: int) -> str:
    """A number of bytes as people say it: 5.6 GB."""
    size = float(count)
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 999.5:
            return f"{size:.0f} {unit}" if unit == "bytes" or size >= 99.5 else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
