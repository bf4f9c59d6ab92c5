"""Losses are inferred only where no other could be meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.diagnosis.losses import class_axis, cross_entropy_of_scores, loss_for
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

STREAM = torch_generator(0, "test losses")
X = torch.randn(6, 4, generator=STREAM)
LABELS = torch.tensor([0, 1, 2, 0, 1, 2])


class WithOwnLoss(nn.Module):
    """Returns its loss beside its scores where it is given labels, as Hugging Face's networks do."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x: Tensor, labels: Tensor | None = None) -> Any:
        scores = self.layer(x)
        return SimpleNamespace(
            loss=None if labels is None else F.cross_entropy(scores, labels), logits=scores
        )


def test_what_is_given_is_taken() -> None:
    criterion = nn.MSELoss()
    assert loss_for(nn.Linear(4, 3), (X, X[:, :3]), criterion, None).criterion is criterion


def test_whole_numbers_beside_scores_mean_cross_entropy() -> None:
    found = loss_for(nn.Linear(4, 3), (X, LABELS), None, None)
    assert isinstance(found.criterion, nn.CrossEntropyLoss)
    assert "cross entropy, inferred" in found.words


def test_a_network_with_a_loss_of_its_own_keeps_it() -> None:
    network = WithOwnLoss()
    found = loss_for(network, {"x": X, "labels": LABELS}, None, None)
    assert found.loss_fn is not None
    assert torch.equal(
        found.loss_fn(network, {"x": X, "labels": LABELS}), F.cross_entropy(network.layer(X), LABELS)
    )


def test_sequences_have_their_classes_where_labels_lack_an_axis() -> None:
    network = nn.Linear(4, 5)
    x, labels = torch.randn(2, 3, 4, generator=STREAM), torch.tensor([[0, 4, -100], [1, 2, 3]])
    found = loss_for(network, (x, labels), None, None)
    assert found.loss_fn is cross_entropy_of_scores
    wanted = F.cross_entropy(network(x).flatten(0, 1), labels.flatten())
    torch.testing.assert_close(found.loss_fn(network, (x, labels)), wanted)


@pytest.mark.parametrize(
    ("batch", "words"),
    [
        (X, "holds no target"),
        ((X, torch.zeros(6, 3)), "fit more than one loss"),
        ((X, LABELS + 1), "labels run from 1 to 3, but there are 3 scores"),
        ((X, torch.full((6,), -1)), "labels run from -1 to -1"),
        ((X, LABELS[:, None]), "fit more than one loss"),
    ],
)
def test_nothing_is_guessed(batch: Any, words: str) -> None:
    found = loss_for(nn.Linear(4, 3), batch, None, None)
    assert not found.known
    assert words in found.words


def test_scores_on_two_axes_are_not_told_apart() -> None:
    labels = torch.zeros(2, 5, dtype=torch.int64)
    assert class_axis(torch.zeros(2, 5, 5), labels) is None
    assert class_axis(torch.zeros(2, 7, 5), labels) == 1
    assert class_axis(torch.zeros(2, 5, 7), labels) == 2


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_labels_of_every_whole_type_have_the_same_cross_entropy(dtype: torch.dtype) -> None:
    model, batch = nn.Linear(4, 3), (X, LABELS.to(dtype))
    found = loss_for(model, batch, None, None)
    subject = Subject.of(model, criterion=found.criterion, loss_fn=found.loss_fn)
    assert subject.losses(batch).item() == pytest.approx(F.cross_entropy(model(X), LABELS).item())
