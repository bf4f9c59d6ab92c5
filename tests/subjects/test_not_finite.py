"""The module that makes the first number that is not finite is named, not the one that is given it."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.not_finite import first_not_finite

X = torch.randn(4, 3, generator=torch_generator("not finite"))


class Between(nn.Module):
    """Takes a logarithm between two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(3, 3), nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.second(torch.log(-self.first(x).abs()))


class Masked(nn.Module):
    """Adds a mask of −∞, which is given to a part and is no defect."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.attention = nn.Linear(3, 3), nn.MultiheadAttention(3, 1)

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.full((4, 4), -torch.inf).triu(1)
        steps = self.layer(x)
        return self.attention(steps, steps, steps, attn_mask=mask)[0]


@pytest.mark.parametrize(
    ("net", "name"),
    [
        (nn.Sequential(nn.Linear(3, 3), nn.ReLU()), ""),
        (nn.Sequential(nn.Sequential(nn.Linear(3, 3), Between()), nn.Linear(3, 3)), "0.1"),
        (Between(), "the network itself"),
        (Masked(), ""),
    ],
    ids=["sound", "between two layers", "in the network itself", "masked"],
)
def test_the_module_that_computes_it_is_named(net: nn.Module, name: str) -> None:
    assert first_not_finite(Subject.of(net), X) == name


def test_the_input_and_the_loss_stand_for_themselves() -> None:
    net = nn.Linear(3, 3)
    assert first_not_finite(Subject.of(net), X / 0) == "the input"
    endless = Subject.of(net, loss_fn=lambda model, batch: model(batch).sum() + torch.inf)
    assert first_not_finite(endless, X) == "the loss"
