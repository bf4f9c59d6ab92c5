"""Residual branches beside their shortcuts: closed forms, planted defects, and one answer however samples are cut."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.branch_ratios import BranchRatios, branch_ratios
from skiplab.randomness import torch_generator
from skiplab.subjects.residual_blocks import residual_blocks

X = torch.randn(12, 6, generator=torch_generator("branches"), dtype=torch.float64)


class Block(nn.Module):
    """x + β W x, added in one of the ways in which networks add."""

    def __init__(self, beta: float, way: str = "plain") -> None:
        super().__init__()
        self.layer, self.beta, self.way = nn.Linear(6, 6, bias=False), beta, way
        nn.init.eye_(self.layer.weight)

    def forward(self, x: Tensor) -> Tensor:
        branch = self.layer(x)
        if self.way == "alpha":
            return torch.add(x, branch, alpha=self.beta)
        branch = self.beta * branch
        if self.way == "in place":
            branch += x
            return branch
        return branch + x if self.way == "turned" else x + branch


def stack(*betas: float, way: str = "plain") -> nn.Sequential:
    return nn.Sequential(*(Block(beta, way) for beta in betas)).double()


def random_stack(seed: int) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(6, 6), nn.BatchNorm1d(6), *(Block(0.5) for _ in range(3)))
        for part in net[2:]:
            nn.init.normal_(part.layer.weight)
    return net.double()


@pytest.mark.parametrize("way", ["plain", "turned", "in place", "alpha"])
def test_a_branch_of_beta_times_the_shortcut_has_ratio_beta(way: str) -> None:
    found = branch_ratios(stack(0.5, 2.0, way=way), X)
    assert found.layers == ("0", "1")
    assert found.ratio[0].tolist() == pytest.approx([0.5, 2.0])
    assert found.growth[0].tolist() == pytest.approx([1.5, 3.0])


def test_independent_branches_add_their_squares() -> None:
    class Orthogonal(nn.Module):
        """A branch that fills the half of the activity which the shortcut leaves empty."""

        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(6, 6, bias=False)
            self.layer.weight.data.copy_(torch.eye(6).roll(3, 0))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.layer(x)

    x = X.clone()
    x[:, 3:] = 0
    found = branch_ratios(nn.Sequential(Orthogonal()).double(), x)
    assert found.ratio.item() == pytest.approx(1.0)
    assert found.growth.item() == pytest.approx(2**0.5)


def test_an_exploding_branch_is_found_in_its_row() -> None:
    net = stack(0.3, 0.3, 0.3, 0.3)
    net[2].layer.weight.data *= 100
    found = branch_ratios(net, X)
    assert found.ratio[0].tolist() == pytest.approx([0.3, 0.3, 30.0, 0.3])
    assert "30 at addition 2" in repr(found)


def same(one: BranchRatios, other: BranchRatios, rows: Any = slice(None)) -> None:
    torch.testing.assert_close(one.ratio, other.ratio[rows], rtol=1e-9, atol=0)
    torch.testing.assert_close(one.growth, other.growth[rows], rtol=1e-9, atol=0)


def test_it_does_not_matter_how_samples_are_cut_into_batches() -> None:
    net = random_stack(0)
    same(branch_ratios(net, iter([X[:1], X[1:5], X[5:]])), branch_ratios(net, X))


@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("mode", ["eval", "train", "batch"])
def test_members_have_what_they_have_alone(backend: str, mode: str) -> None:
    nets = [random_stack(seed) for seed in range(3)]
    together = branch_ratios(Ensemble.of(nets, backend=backend), X, mode=mode)
    for place, net in enumerate(nets):
        same(branch_ratios(net, X, mode=mode), together, slice(place, place + 1))


def test_additions_are_those_that_residual_blocks_finds() -> None:
    net = stack(0.5, 2.0, 1.0)
    found = branch_ratios(net, X)
    assert found.blocks == residual_blocks(net, X)
    assert branch_ratios(net, X, layers=["2", "0"]).ratio[0].tolist() == pytest.approx([1.0, 0.5])
    with pytest.raises(Refused, match=r"layer '0\.layer' adds no branch to what it began with"):
        branch_ratios(net, X, layers=["0.layer"])


def test_numbers_that_are_not_finite_are_answered_and_placed() -> None:
    nets = [stack(0.5, 0.5, 0.5), stack(0.5, 0.5, 0.5)]
    nets[1][1].layer.weight.data[0, 0] = torch.inf
    found = branch_ratios(nets[1], X)
    assert found.first_not_finite == ("1.layer",)
    assert found.ratio[0, 0].item() == pytest.approx(0.5)
    assert found.ratio[0, 1].item() == torch.inf
    assert branch_ratios(Ensemble.of(nets), X).first_not_finite == ("", "1.layer")


def test_a_defect_behind_the_last_addition_is_placed_too() -> None:
    net = nn.Sequential(stack(0.5), nn.Linear(6, 3).double())
    net[1].bias.data[0] = torch.nan
    assert branch_ratios(net, X).first_not_finite == ("1",)


def test_a_network_without_skips_is_refused() -> None:
    with pytest.raises(Refused, match="no residual addition was found in Linear"):
        branch_ratios(nn.Linear(6, 3).double(), X)
