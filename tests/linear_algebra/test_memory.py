"""What Lanczos takes, and plans that keep within a budget."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch

from skiplab.checks import Refused
from skiplab.linear_algebra import available_bytes, lanczos, lanczos_bytes, memory, plan, probes


def test_the_known_figure():
    basis = lanczos_bytes(1, 10, 873_482, 80) - 10 * 873_482 * 8 * memory.WORKING_VECTORS
    assert memory.in_words(basis) == "5.6 GB"
    halved = lanczos_bytes(1, 10, 873_482, 80, storage=torch.float32)
    assert halved == 10 * 873_482 * (80 * 4 + 8 * memory.WORKING_VECTORS + 4)  # a vector in float32 besides


def test_what_fits_is_one_part():
    found = plan(5, 10, 1000, 80, budget=10**9)
    assert (found.members_at_once, found.probes_at_once, found.parts) == (5, 10, 1)
    assert list(found.slices()) == [(slice(0, 5), slice(0, 10))]


@pytest.mark.parametrize(
    ("fits", "members_at_once", "probes_at_once", "parts"), [(25, 5, 5, 2), (5, 5, 1, 10), (4, 3, 1, 20)]
)
def test_probes_are_split_before_members(fits, members_at_once, probes_at_once, parts):
    found = plan(5, 10, 1000, 80, budget=fits * lanczos_bytes(1, 1, 1000, 80))
    assert (found.members_at_once, found.probes_at_once, found.parts) == (
        members_at_once,
        probes_at_once,
        parts,
    )


@pytest.mark.parametrize("members", [1, 3, 7])
@pytest.mark.parametrize("count", [1, 4, 10])
@pytest.mark.parametrize("fits", [1, 2, 5, 11, 100])
def test_parts_cover_everything_once_within_the_budget(members, count, fits):
    one = lanczos_bytes(1, 1, 50, 20) + 300
    found = plan(members, count, 50, 20, budget=fits * one + 10, product_bytes=300)
    seen = torch.zeros(members, count)
    for rows, columns in found.slices():
        seen[rows, columns] += 1
        assert seen[rows, columns].numel() * one <= found.bytes <= found.budget
    assert (seen == 1).all()
    assert len(list(found.slices())) == found.parts


def test_a_run_in_planned_parts_equals_the_whole(generator, with_eigenvalues):
    matrices = with_eigenvalues(torch.randn(3, 25, generator=generator))
    start = probes((3,), 4, 25, generator)
    found = plan(3, 4, 25, 8, budget=2 * lanczos_bytes(1, 1, 25, 8))
    assert found.parts == 8
    whole = lanczos(lambda v: v @ matrices, start, 8)
    for members, columns in found.slices():
        part = lanczos(lambda v, m=matrices[members]: v @ m, start[members, columns], 8)
        for name in ("diagonal", "off_diagonal", "last_off_diagonal", "lengths"):
            alone, among = getattr(part, name), getattr(whole, name)[members, columns]
            torch.testing.assert_close(alone, among, rtol=0, atol=1e-11)


def test_the_plan_says_its_memory():
    words = str(plan(1, 10, 873_482, 80, budget=4 * 10**9))
    assert words.startswith(
        "Lanczos takes 3.0 GB in each of 2 parts: 1 × 5 probes × 80 steps × 873,482 numbers"
    )


def test_too_small_a_budget_is_refused_with_the_steps_that_fit():
    with pytest.raises(Refused, match="take at most 44 steps or raise the budget"):
        plan(1, 1, 1000, 80, budget=400_000)
    assert plan(1, 1, 1000, 44, budget=400_000).parts == 1
    with pytest.raises(Refused, match=r"of 4\.0 kB; raise the budget"):
        plan(1, 1, 1000, 80, budget=4000)


def test_the_default_budget_is_a_share_of_what_is_free(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda device: 10**10)
    assert plan(1, 1, 1000, 80).budget == memory.SHARE * 10**10
    monkeypatch.undo()
    assert 10**6 < available_bytes() < 10**14


PEAK = """
import sys
import torch
from skiplab import linear_algebra as la

def status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) * 1024

dtype, steps, size = getattr(torch, sys.argv[1]), int(sys.argv[2]), 600_000
diagonal, start = torch.linspace(1, 2, size, dtype=dtype), torch.ones(1, size, dtype=dtype)
la.lanczos(lambda v: v * diagonal, start, 2)  # what torch loads when it is first used
open("/proc/self/clear_refs", "w").write("5")  # the high water mark is what there is now
before = status("VmRSS")
la.lanczos(lambda v: v * diagonal, start, steps)
print(status("VmHWM") - before, la.lanczos_bytes(1, 1, size, steps, storage=dtype))
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux says what a process has held at most"
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("steps", [4, 24])
def test_what_is_planned_is_what_is_held(dtype, steps):
    """Of memory that is given back at once (MALLOC_MMAP_THRESHOLD_), so that the peak is that of live numbers."""
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "100000", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", PEAK, dtype, str(steps)]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    held, planned = map(int, answer.stdout.split())
    assert held == pytest.approx(planned, rel=0.02)


OTHERS = """
import sys
import torch
from skiplab import linear_algebra as la
from skiplab.randomness import torch_generator

def status(name):
    line = next(line for line in open("/proc/self/status") if line.startswith(name))
    return int(line.split()[1]) * 1024

what, dtype, count, members = sys.argv[1], getattr(torch, sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
size, stream = 600_000, torch_generator(0, "memory")
diagonal = torch.cat([torch.linspace(1, 2, size - 40, dtype=dtype), torch.linspace(3, 50, 40, dtype=dtype)])
how = {"lead": (members,), "dtype": dtype}

def run(count):
    if what == "trace":
        la.xtrace(lambda v: v * diagonal, size, count, stream, **how)
        return la.trace_held(members, size, dtype)
    block = int(what)
    la.extreme_eigenvalues(
        lambda v: v * diagonal, size, block, stream, tolerance=1e-15, max_steps=count, block=block, **how
    )
    return la.extremes_held(members, size, block, dtype)

run(4)  # what torch loads when it is first used
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
held = run(count)
print(status("VmHWM") - before, held.bytes(count))
"""


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="only Linux says what a process has held at most"
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("members", ["1", "2"])
@pytest.mark.parametrize(
    ("what", "count"), [("1", "5"), ("1", "20"), ("2", "9"), ("trace", "6"), ("trace", "20")]
)
def test_extremes_and_traces_hold_what_is_planned(what, count, members, dtype):
    environment = os.environ | {"MALLOC_MMAP_THRESHOLD_": "100000", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", OTHERS, what, dtype, count, members]
    answer = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    held, planned = map(int, answer.stdout.split())
    assert held == pytest.approx(planned, rel=0.02)


def test_what_fits_is_what_is_held():
    held = memory.extremes_held(2, 1000, 1, torch.float32)
    for budget in (held.bytes(7), held.bytes(8) - 1):
        assert held.fitting(budget) == 7
    assert held.fitting(100) == 0


def test_what_graphs_hold_is_not_free(monkeypatch):
    for name, value in (("mem_get_info", (1000, 5000)), ("memory_reserved", 300), ("memory_allocated", 120)):
        monkeypatch.setattr(torch.cuda, name, lambda device, value=value: value)
    monkeypatch.setattr(memory, "held_bytes", lambda device: 70)
    assert available_bytes("cuda") == 1000 + 300 - 120 - 70


def test_nothing_plans_with_more_than_is_allowed():
    free = available_bytes()
    with memory.allowing(10**7):
        assert available_bytes() == 10**7
        assert memory.budget_of(None) == memory.SHARE * 10**7
        with memory.allowing(None):
            assert available_bytes() > 10**7
        assert available_bytes() == 10**7
    with memory.allowing(10**18):
        assert 0.5 * free < available_bytes() < 10**18
