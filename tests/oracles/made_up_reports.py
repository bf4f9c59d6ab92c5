"""Reports of made-up findings on a small network that was really measured."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch
from torch import nn

from skiplab.diagnosis.chart import Examined, Unmeasured
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.patient import Patient
from skiplab.diagnosis.report import Report
from skiplab.diagnosis.scan import scanned
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.measurements.singularities import singularities
from skiplab.randomness import torch_generator


def network(names: tuple[str, ...] = ("a", "b", "c"), seed: int = 0) -> tuple[nn.Module, Any]:
    """A rectified network with layers of these names, and a batch for it."""
    model = nn.Sequential()
    for place, name in enumerate(names):
        model.add_module(name, nn.Linear(4, 4))
        model.add_module(f"act{place}", nn.ReLU())
    model.add_module("head", nn.Linear(4, 3))
    drawn = torch_generator(seed, "made up")
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=drawn) / 2)
    return model, (torch.randn(12, 4, generator=drawn), torch.randint(3, (12,), generator=drawn))


VANISHING = Finding(
    "vanishing-gradients",
    "severe",
    ("a", "b"),
    "gradients fall 800-fold from the output to the input",
    statistic=8e-4,
    low=5e-4,
    high=1.2e-3,
    unit="of the last layer's",
    usual=(0.1, 30.0),
    reference="healthy networks have 0.1 to 30 (orhan2017/figure-8)",
    paper="orhan2018",
    support="17 of 20 claims of orhan2018 hold in our runs",
    remedy=("skips-identity", "gain"),
    weight=5.0,
    told_by=("gradient_norms",),
)
DEAD = Finding(
    "dead-units",
    "warning",
    ("b",),
    "3 of 4 units never act",
    statistic=0.75,
    unit="of the units",
    usual=(-math.inf, 0.4),
    reference="healthy networks have at most 0.4",
    paper="orhan2018/figure-4, balduzzi2017",
    remedy=("gain",),
    told_by=("singularities",),
)
SHALLOW = Finding(
    "shallow-paths",
    "info",
    (),
    "paths of 1 to 3 blocks carry the output",
    statistic=math.nan,
    unit="blocks",
    reference="",
    paper="littwin2017",
)


def report(
    findings: tuple[Finding, ...] = (VANISHING, DEAD, SHALLOW),
    names: tuple[str, ...] = ("a", "b", "c"),
    seed: int = 0,
    name: str = "Tower",
) -> Report:
    """A report with these findings, and two real measurements of a network."""
    model, batch = network(names, seed)
    patient = Patient.of(model, batch, criterion=nn.CrossEntropyLoss())
    results = {
        "gradient_norms": gradient_norms(patient.subject, patient.batch),
        "singularities": singularities(patient.subject, patient.batch),
    }
    measured = tuple(Examined(each, f"question of {each}", result, 0.25) for each, result in results.items())
    left = (Unmeasured("path_depth", "how deep paths are", "the network has no residual branch"),)
    scan = dataclasses.replace(scanned(patient), seconds=0.001)
    return Report(name, findings, measured, left, scan, patient.assumed, 3.5)
