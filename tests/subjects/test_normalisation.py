"""A person is told where batch normalisation would be measured with statistics of no batch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import skiplab as sl
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.normalisation import UnusedStatistics, has_fresh_statistics

STREAM = torch_generator(0, "test normalisation")
BATCH = (torch.randn(8, 6, generator=STREAM), torch.randint(3, (8,), generator=STREAM))
SETTINGS: dict[str, Any] = {"criterion": nn.CrossEntropyLoss()}
CALLS: dict[str, Callable[..., Any]] = {
    "gradient_norms": lambda net, **how: sl.gradient_norms(net, BATCH, **SETTINGS, **how),
    "layer_signals": lambda net, **how: sl.layer_signals(net, BATCH, **SETTINGS, **how),
    "saturation": lambda net, **how: sl.saturation(net, BATCH, **how),
    "activation_patterns": lambda net, **how: sl.activation_patterns(net, BATCH, **how),
    "gradient_shattering": lambda net, **how: sl.gradient_shattering(net, BATCH, **how),
    "layer_cushions": lambda net, **how: sl.layer_cushions(net, BATCH, **how),
    "weight_noise": lambda net, **how: sl.weight_noise(net, BATCH, **how),
    "singularities": lambda net, **how: sl.singularities(net, BATCH, **SETTINGS, **how),
    "hessian_spectrum": lambda net, **how: sl.hessian_spectrum(net, BATCH, **SETTINGS, **how),
    "hessian_trace": lambda net, **how: sl.hessian_trace(net, BATCH, **SETTINGS, **how),
    "permutation_symmetry": lambda net, **how: sl.permutation_symmetry(net, BATCH, **SETTINGS, **how),
}


def network() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 3))


def told(call: Callable[..., Any], target: Any, **how: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(target, **how)
    return [str(each.message) for each in caught if each.category is UnusedStatistics]


@pytest.mark.parametrize("name", CALLS)
def test_unused_statistics_are_told_once_with_the_mode_that_fits(name: str) -> None:
    (words,) = told(CALLS[name], network())
    better = words.partition('mode="')[2].partition('"')[0]
    assert told(CALLS[name], network(), mode=better) == []


@pytest.mark.parametrize("name", CALLS)
def test_the_warning_names_the_callers_line(name: str) -> None:
    with pytest.warns(UnusedStatistics) as caught:
        CALLS[name](network())
    assert caught[0].filename == __file__


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_told_of_used_statistics_nor_of_subjects(name: str) -> None:
    used = network()
    used(BATCH[0])
    assert told(CALLS[name], used) == []
    assert told(CALLS[name], nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 3))) == []


def test_a_subject_chooses_its_mode_itself() -> None:
    assert told(sl.layer_signals, Subject.of(network(), **SETTINGS), batches=BATCH) == []


def test_a_diagnosis_takes_the_batchs_statistics_and_says_nothing() -> None:
    assert told(sl.diagnose, network(), batches=BATCH, budget=5, examinations=["layer_signals"]) == []


def test_layers_without_running_statistics_are_not_fresh() -> None:
    assert not has_fresh_statistics(nn.BatchNorm1d(3, track_running_stats=False))
    assert not has_fresh_statistics(nn.LayerNorm(3))
    assert has_fresh_statistics(nn.BatchNorm1d(3))
