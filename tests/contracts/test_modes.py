"""One rule for the mode in which instruments measure: what is asked for, else a Subject's own, else evaluation.

Every instrument of ``sl`` that takes a mode is tried; a new one needs no line here.
"""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import skiplab as sl
from skiplab.checks import Refused
from skiplab.measurements.result import Result
from skiplab.randomness import torch_generator


def takes_a_mode(name: str) -> bool:
    each = getattr(sl, name)
    return inspect.isfunction(each) and "mode" in inspect.signature(each).parameters


MODED = sorted(filter(takes_a_mode, sl.__all__))
BY_SAMPLE = {"activation_patterns", "gradient_shattering", "path_depth"}  # these refuse training mode
HOW: dict[str, dict[str, Any]] = {"hessian_spectrum": {"method": "exact"}, "weight_noise": {"draws": 2}}
X = torch.randn(8, 6, generator=torch_generator("modes"), dtype=torch.float64)
Y = torch.randint(3, (8,), generator=torch_generator("mode labels"))
LOSS = nn.CrossEntropyLoss()


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm, self.act = nn.Linear(6, 6), nn.BatchNorm1d(6), nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        return x + self.act(self.norm(self.linear(x)))


@pytest.fixture
def network() -> nn.Module:
    """A network whose running statistics are far from a batch's, in training mode itself."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = nn.Sequential(Block(), Block(), nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 3)).double()
    for part in net.modules():
        if isinstance(part, nn.BatchNorm1d):
            part.running_mean += 0.3
            part.running_var *= 2.5
            part.num_batches_tracked += 1
    return net.train()


def measured(name: str, target: Any, **how: Any) -> list[Tensor]:
    loss: dict[str, Any] = {}
    if isinstance(target, nn.Module) and "criterion" in inspect.signature(getattr(sl, name)).parameters:
        loss["criterion"] = LOSS
    if name == "gradient_shattering":
        how["outputs"] = "loss"
    found: Result = getattr(sl, name)(target, (X, Y), **loss, **HOW.get(name, {}), **how)
    return [each.value for each in found.estimates.values()]


def alike(one: list[Tensor], other: list[Tensor]) -> bool:
    pairs = zip(one, other, strict=True)
    return all(
        torch.allclose(a.double(), b.double(), rtol=1e-9, atol=1e-12, equal_nan=True) for a, b in pairs
    )


def test_the_instruments_are_found() -> None:
    assert len(MODED) >= 17
    assert set(MODED) > BY_SAMPLE


@pytest.mark.parametrize("name", MODED)
def test_nothing_is_asked_for_by_default(name: str) -> None:
    assert inspect.signature(getattr(sl, name)).parameters["mode"].default is None


@pytest.mark.parametrize("name", MODED)
def test_what_is_asked_for_wins_and_else_a_subject_is_measured_in_its_own_mode(
    name: str, network: nn.Module
) -> None:
    evaluating, training = (sl.Subject.of(network, criterion=LOSS, train_mode=each) for each in (False, True))
    in_evaluation = measured(name, network, mode="eval")
    # Not the module's own, which is training.
    assert alike(measured(name, network), in_evaluation)
    assert alike(measured(name, evaluating), in_evaluation)
    assert alike(measured(name, training, mode="eval"), in_evaluation)
    if name in BY_SAMPLE:
        for target, mode in ((training, None), (evaluating, "train"), (network, "train")):
            with pytest.raises(
                Refused, match="mode is 'train', in which every sample's answer depends on all"
            ):
                measured(name, target, mode=mode)
        in_batch = measured(name, network, mode="batch")
        assert alike(measured(name, training, mode="batch"), in_batch)
        assert not alike(in_batch, in_evaluation)
        return
    in_training = measured(name, network, mode="train")
    assert alike(measured(name, training), in_training)
    assert alike(measured(name, evaluating, mode="train"), in_training)
    assert not alike(in_training, in_evaluation)
