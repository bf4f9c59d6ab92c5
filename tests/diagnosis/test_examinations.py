"""What examinations are estimated to cost: passes that are timed, and what passes of no length would take."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from skiplab.diagnosis.examinations import (
    DRAW_PASSES,
    DRAW_SECONDS,
    EXAMINATIONS,
    permutations,
    rescalings,
)
from skiplab.diagnosis.patient import Patient
from skiplab.diagnosis.scan import Scan, scanned
from skiplab.measurements.symmetry import permutation_symmetry, rescaling_symmetry
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

X = torch.randn(12, 4, generator=torch_generator("examinations"))
COUNTED = {"permutation_symmetry": permutations, "rescaling_symmetry": rescalings}


def chain(depth: int) -> nn.Module:
    inner = [part for _ in range(depth - 1) for part in (nn.Linear(4, 4), nn.ReLU())]
    return nn.Sequential(*inner, nn.Linear(4, 3)).requires_grad_()


def scan_of(network: nn.Module, seconds: float) -> Scan:
    with torch.random.fork_rng(devices=[]):
        patient = Patient.of(network, X, criterion=None, loss_fn=None)
        return replace(scanned(patient), seconds=seconds)


@pytest.mark.parametrize("depth", [2, 3, 7, 12])
def test_draws_of_symmetries_are_counted_as_they_are_made(depth: int) -> None:
    network = chain(depth)
    scan, subject = scan_of(network, 1.0), Subject.of(network)
    assert permutations(scan) == permutation_symmetry(subject, X).change.shape[1]
    assert rescalings(scan) == rescaling_symmetry(subject, X).change.shape[1]


@pytest.mark.parametrize("name", COUNTED)
def test_an_estimate_is_passes_times_their_seconds_and_a_fixed_cost_per_draw(name: str) -> None:
    (examination,) = [each for each in EXAMINATIONS if each.name == name]
    fixed = {}
    for depth in (3, 12):
        free, dear = (scan_of(chain(depth), seconds) for seconds in (0.0, 10.0))
        draws = COUNTED[name](free)
        fixed[depth] = examination.expected(free) / draws
        # However short a pass is, each draw takes its time: of tiny networks that is most of it.
        assert fixed[depth] >= DRAW_SECONDS
        # However long it is, a draw takes no more than a forward pass in addition.
        per_pass = (examination.expected(dear) - examination.expected(free)) / 10.0
        assert per_pass == pytest.approx(DRAW_PASSES * draws + 4)
    assert fixed[12] > fixed[3]


def test_other_examinations_cost_passes_alone() -> None:
    scan = scan_of(chain(4), 2.0)
    for each in EXAMINATIONS:
        if each.name not in COUNTED:
            assert each.expected(scan) == 2.0 * each.passes(scan), each.name
