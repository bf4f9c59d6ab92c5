"""Batches are put together where that changes nothing, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.fully_connected import PlainNet
from skiplab.curvature import products as module_under_test
from skiplab.curvature.merging import can_be_merged, joined, merged
from skiplab.curvature.products import HessianProduct
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

DRAW = torch_generator("merging")
X = torch.randn(20, 4, generator=DRAW, dtype=torch.float64)
Y = torch.randint(3, (20,), generator=DRAW)
Z = torch.rand(20, 3, generator=DRAW, dtype=torch.float64)
SIZES = (5, 3, 5, 5, 2)
WEIGHTS = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64)
CRITERIA = {
    "mean": (nn.CrossEntropyLoss(), Y),
    "sum": (nn.CrossEntropyLoss(reduction="sum"), Y),
    "weighted": (nn.CrossEntropyLoss(weight=WEIGHTS), Y),
    "ignoring": (nn.CrossEntropyLoss(ignore_index=1), Y),
    "squares": (nn.MSELoss(), Z),
    "logits": (nn.BCEWithLogitsLoss(), Z),
}


def network() -> nn.Module:
    return PlainNet(4, 5, 3, 3, generator=torch_generator("merging", "net"), dtype=torch.float64)


def parts(*tensors: Tensor) -> list[tuple[Tensor, ...]]:
    return list(zip(*(tensor.split(SIZES) for tensor in tensors), strict=True))


def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_under_test, "can_be_merged", lambda *_: False)


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("as_dicts", [False, True])
def test_products_are_those_of_the_batches_one_by_one(
    name: str, as_dicts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    criterion, target = CRITERIA[name]
    batches: list[Any] = parts(X, target)
    if as_dicts:
        batches = [{"x": x, "labels": y} for x, y in batches]
    together = HessianProduct(network(), batches, criterion=criterion)
    assert len(together._parts) == 1
    one_by_one(monkeypatch)
    apart = HessianProduct(network(), batches, criterion=criterion)
    assert len(apart._parts) == len(SIZES)
    vectors = torch.randn(1, 3, together.dimension, generator=torch_generator("v"), dtype=torch.float64)
    torch.testing.assert_close(together(vectors), apart(vectors), rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(together.gradient(), apart.gradient(), rtol=1e-11, atol=1e-13)
    torch.testing.assert_close(together.loss(), apart.loss(), rtol=1e-12, atol=0)
    assert together.samples == apart.samples == 20


def test_no_batch_grows_beyond_the_room(monkeypatch: pytest.MonkeyPatch) -> None:
    batches = parts(X, Y)
    assert [len(x) for x, _ in merged(batches, 8)] == [8, 5, 7]
    assert [len(x) for x, _ in merged(batches, 1)] == list(SIZES)
    torch.testing.assert_close(joined(merged(batches, 8))[0], X, rtol=0, atol=0)
    monkeypatch.setattr(module_under_test, "MERGED_BYTES", 1)
    assert len(HessianProduct(network(), batches, criterion=nn.CrossEntropyLoss())._parts) == len(SIZES)


class Centred(nn.Module):
    """A network whose samples see each other in every mode."""

    def __init__(self) -> None:
        super().__init__()
        self.net = network()

    def forward(self, x: Tensor) -> Tensor:
        return self.net(x - x.mean(0))


def test_a_network_that_mixes_samples_keeps_its_batches() -> None:
    product = HessianProduct(Centred(), parts(X, Y), criterion=nn.CrossEntropyLoss())
    assert len(product._parts) == len(SIZES)


def test_what_is_not_known_to_add_up_stays_apart() -> None:
    batches, usual = parts(X, Y), nn.CrossEntropyLoss()
    assert can_be_merged(Subject.of(network(), criterion=usual), batches)
    assert not can_be_merged(Subject.of(network(), criterion=usual), batches[:1])
    assert not can_be_merged(Subject.of(network(), criterion=F.cross_entropy), batches)
    assert not can_be_merged(Subject.of(network(), criterion=usual, train_mode=True), batches)
    assert not can_be_merged(Subject.of(network(), loss_fn=lambda model, b: model(b[0]).sum()), batches)
    unlike = [*batches, (torch.ones(2, 4), Y[:2])]
    assert not can_be_merged(Subject.of(network(), criterion=usual), unlike)
    notes = [{"x": x, "labels": y, "note": "text"} for x, y in batches]
    assert not can_be_merged(Subject.of(network(), criterion=usual), notes)


def test_a_criterion_with_a_weight_for_each_place_in_the_batch_keeps_its_batches() -> None:
    criterion = nn.BCEWithLogitsLoss(weight=Z[:5, :1])
    batches = list(zip(X.split(5), Z.split(5), strict=True))
    product = HessianProduct(network(), batches, criterion=criterion)
    assert len(product._parts) == 4
    means = torch.stack([HessianProduct(network(), each, criterion=criterion).gradient() for each in batches])
    torch.testing.assert_close(product.gradient(), means.mean(0))
