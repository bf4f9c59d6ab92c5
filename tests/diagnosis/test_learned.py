"""A network that has learned its samples is told by its loss beside that of the best constant answer."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.diagnosis.diagnose import diagnose
from skiplab.diagnosis.learned import LEARNED, best_constant, has_learned
from skiplab.diagnosis.patient import Patient
from skiplab.randomness import torch_generator

STREAM = torch_generator(5, "test learned")
X = torch.randn(12, 4, generator=STREAM)
LABELS = torch.tensor([0, 1, 1, 2] * 3)
NUMBERS = torch.randn(12, 2, generator=STREAM)


class Answers(nn.Module):
    """Gives what it holds, whatever the input: a parameter, so that losses have derivatives."""

    def __init__(self, answer: Tensor) -> None:
        super().__init__()
        self.layer, self.answer = nn.Linear(4, 1), nn.Parameter(answer)

    def forward(self, x: Tensor) -> Tensor:
        return self.answer.expand(len(x), -1) + 0 * self.layer(x)


def patient(model: nn.Module, target: Tensor, criterion: Any) -> Patient:
    return Patient.of(model, (X, target), criterion=criterion)


@pytest.mark.parametrize("criterion", [nn.CrossEntropyLoss(), None])
def test_the_best_constant_answer_to_labels_has_their_entropy(criterion: Any) -> None:
    shares = torch.tensor([0.25, 0.5, 0.25])
    found = best_constant(patient(Answers(shares.log()), LABELS, criterion))
    assert found == pytest.approx(1.5 * math.log(2))
    assert found == pytest.approx(float(F.cross_entropy(shares.log().expand(12, -1), LABELS)))


def test_the_best_constant_answer_to_numbers_has_their_variance() -> None:
    found = best_constant(patient(Answers(NUMBERS.mean(0)), NUMBERS, nn.MSELoss()))
    assert found == pytest.approx(float(F.mse_loss(NUMBERS.mean(0).expand(12, -1), NUMBERS)), rel=1e-5)


@pytest.mark.parametrize(
    ("target", "criterion"),
    [
        (NUMBERS, nn.L1Loss()),
        (NUMBERS, nn.MSELoss(reduction="sum")),
        (LABELS, nn.CrossEntropyLoss(weight=torch.ones(3))),
        (LABELS, lambda output, target: F.cross_entropy(output, target)),
    ],
)
def test_of_other_losses_nothing_is_said(target: Tensor, criterion: Any) -> None:
    outputs = 3 if target is LABELS else 2
    assert best_constant(patient(nn.Linear(4, outputs), target, criterion)) is None
    assert not has_learned(patient(nn.Linear(4, outputs), target, criterion))


def test_half_of_the_constant_answers_loss_is_the_limit() -> None:
    class Knows(nn.Module):
        def __init__(self, share: float) -> None:
            super().__init__()
            self.layer, self.share = nn.Linear(4, 1), share

        def forward(
            self, x: Tensor
        ) -> Tensor:  # what is missing of the targets, as a share of their deviation
            return NUMBERS.mean(0) + (1 - self.share) * (NUMBERS - NUMBERS.mean(0)) + 0 * self.layer(x)

    for share, known in ((0.99 * LEARNED**0.5, True), (1.01 * LEARNED**0.5, False)):
        assert has_learned(patient(Knows(share), NUMBERS, nn.MSELoss())) is known


def test_saturated_activations_are_a_fact_of_a_network_that_has_learned_and_a_trouble_before() -> None:
    labels = (X[:, 0] > 0).long()
    network = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 2))
    with torch.no_grad():  # every layer hands the sign of the first input on
        for layer in (network[0], network[2], network[4]):
            layer.weight.zero_()
            layer.bias.zero_()
        network[0].weight[:, 0] = 1e4
        network[2].weight[:, 0] = 1e2
        network[4].weight[:, 0] = torch.tensor([-8.0, 8.0])

    def severities(target: Tensor) -> set[str]:
        report = diagnose(network, (X, target), examinations=["saturation", "layer_signals"], budget=20)
        return {each.severity for each in report.findings if each.id == "saturated-activations"}

    assert severities(labels) == {"info"}
    assert severities(1 - labels) == {"severe"}
