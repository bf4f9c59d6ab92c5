"""β and α: a branch is exactly β times what it was, a sum α times."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from networks_to_treat import blocks, drawn, mlp, normal
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.remedies import REMEDIES, add_skips, rescale_branches
from skiplab.remedies.recorded_pass import recorded
from skiplab.subjects.residual_blocks import residual_blocks

EXACT = {"rtol": 0.0, "atol": 1e-12}


def by_hand(net: nn.Sequential, x: Tensor, betas: dict[int, float], alpha: float = 1.0) -> Tensor:
    x = net[0](x)
    for place in range(1, len(net) - 1):
        beta = betas.get(place)
        x = net[place](x) if beta is None else alpha * (x + beta * net[place].branch(x))
    return net[-1](x)


@pytest.mark.parametrize("ends", ["linear", "norm", "bare", "tanh", "relu"])
def test_branches_are_scaled_however_they_end(ends: str) -> None:
    net, x = blocks(ends=ends), normal(7, 5)
    treated = rescale_branches(net, x)
    torch.testing.assert_close(treated.model(x), by_hand(net, x, dict.fromkeys(range(1, 5), 0.5)), **EXACT)
    assert treated.changed == "branches of all 4 residual additions (1, 2, 3, 4) times 0.5"  # 1/√4
    structure = [type(part) for part in treated.model.modules()]
    # Parameters take the factor where they can, and then nothing else changes.
    assert (structure == [type(part) for part in net.modules()]) == (ends in ("linear", "norm", "relu"))


def test_alpha_scales_the_sums_and_where_names_additions() -> None:
    net, x = blocks(), normal(7, 5)
    treated = rescale_branches(net, x, beta=0.3, alpha=0.7, where=["2", "4"])
    torch.testing.assert_close(treated.model(x), by_hand(net, x, {2: 0.3, 4: 0.3}, 0.7), **EXACT)
    assert treated.changed.endswith("2 of 4 residual additions (2, 4) times 0.3, sums times 0.7")


def test_a_part_may_be_scaled_twice() -> None:
    net, x = blocks(ends="tanh"), normal(7, 5)
    once = rescale_branches(net, x, beta=0.5, alpha=0.5).model
    twice = rescale_branches(once, x, beta=0.5, alpha=0.5).model
    expected = by_hand(net, x, dict.fromkeys(range(1, 5), 0.25), 0.25)
    torch.testing.assert_close(twice(x), expected, **EXACT)


def test_skips_that_were_added_are_residual_additions() -> None:
    net, x = mlp(depth=1), normal(7, 5)
    skipped = add_skips(net, x, beta=0.5).model
    treated = rescale_branches(skipped, x, beta=0.5)
    hidden = torch.tanh(net[0](x))
    torch.testing.assert_close(treated.model(x), net[4](hidden + 0.25 * torch.tanh(net[2](hidden))), **EXACT)


@pytest.mark.parametrize("ends", ["linear", "norm"])
@pytest.mark.parametrize("given", [True, False])
def test_an_exploding_branch_becomes_like_the_others(ends: str, given: bool) -> None:
    """The others' ratios move with the branch, so its β is not the ratio of what is measured at first."""
    net, x = blocks(count=6, ends=ends), normal(50, 5)
    with torch.no_grad():
        last = net[2].tail if ends == "norm" else net[2].two
        last.weight.mul_(1000)
        last.bias.mul_(1000)
    treated = rescale_branches(net, x, beta="like the others", where=["2"] if given else None)
    ratios = []
    with torch.no_grad():
        hidden = treated.model[0](x)
        for place in range(1, 7):
            branch = treated.model[place].branch(hidden)
            ratios.append((branch.square().mean() / hidden.square().mean()).sqrt().item())
            hidden = hidden + branch
    if given:
        by_id = REMEDIES["rescale-branches"].apply(net, x, where=["2"])
        assert by_id.changed == treated.changed
    others = sorted(ratios[:1] + ratios[2:])
    assert ratios[1] == pytest.approx(others[2], rel=0.02)
    assert "1 of 6 residual additions (2)" in treated.changed


class Attending(nn.Module):
    """Attention of torch's own, whose output projection is the end of the branch."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(4, 2, batch_first=True)
        self.scale = nn.Parameter(torch.ones(4))
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(x, x, x, need_weights=False)[0]
        return x + self.scale * self.linear(x)


def test_attention_and_layer_scales_take_the_factor() -> None:
    net, x = drawn(Attending()), normal(2, 3, 4)
    treated = rescale_branches(net, x, beta=0.5).model
    hidden = x + 0.5 * net.attention(x, x, x, need_weights=False)[0]
    expected = hidden + 0.5 * net.scale * net.linear(hidden)
    torch.testing.assert_close(treated(x), expected, **EXACT)
    torch.testing.assert_close(treated.scale, 0.5 * net.scale)
    torch.testing.assert_close(treated.linear.weight, net.linear.weight)


class Shared(nn.Module):
    """One layer in two branches, and a branch that ends in a function."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(5, 5)

    def forward(self, x: Tensor) -> Tensor:
        return x + torch.tanh(self.linear(x))


class Twice(Shared):
    def forward(self, x: Tensor) -> Tensor:
        x = x + self.linear(x)
        return x + self.linear(x)


@pytest.mark.parametrize(
    ("net", "settings", "words"),
    [
        (mlp(), {}, "Sequential has no residual addition, so no branch; add skips first"),
        (
            drawn(Shared()),
            {},
            r"the branch of 'linear' ends in tanh\(\), and no module of its own returns it",
        ),
        (drawn(Twice()), {}, "ends in 'linear.weight', which others use too"),
        (
            drawn(Shared()),
            {"beta": "like the others"},
            "there is one residual addition, 'linear', and no others",
        ),
        (blocks(), {"beta": "like others"}, "must be a positive number or 'like the others'"),
        (blocks(), {"beta": -1.0}, "beta is -1.0, but must be a positive number"),
        (blocks(), {"where": ["9"]}, "layer '9' does not exist"),
        (
            blocks(),
            {"beta": "like the others", "where": ["1", "2", "3", "4"]},
            "where names every residual addition",
        ),
    ],
)
def test_what_cannot_be_scaled_is_refused(net: nn.Module, settings: dict, words: str) -> None:
    with pytest.raises(Refused, match=words):
        rescale_branches(net, normal(7, 5), **settings)


def test_one_over_the_root_of_n_keeps_the_variance_below_e() -> None:
    """(1 + β²)ⁿ with β² = 1/n, on branches that keep the variance by themselves (balduzzi2017, theorem 3)."""
    count = 20

    class Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(256, 256, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return x + self.linear(x)

    net, x = drawn(nn.Sequential(*(Linear() for _ in range(count)))), normal(100, 256)
    for block in net:
        block.linear.weight.data.mul_(math.sqrt(3))  # uniform in ±√(3/n) has the variance 1/n
    assert len(residual_blocks(net, x).blocks) == count
    variance = rescale_branches(net, x).model(x).square().mean() / x.square().mean()
    assert variance.item() == pytest.approx((1 + 1 / count) ** count, rel=0.05)


@pytest.mark.parametrize(
    "add",
    [
        lambda x, f: x + f,
        lambda x, f: torch.add(x, other=f),
        lambda x, f: torch.add(input=x, other=f),
        lambda x, f: torch.add(x, f / 2, alpha=2),
    ],
)
def test_the_sizes_of_a_sum_are_the_same_however_it_is_written(add: Any) -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(5, 5, dtype=torch.float64)

        def forward(self, x: Tensor) -> Tensor:
            return add(x, self.layer(x))

    net, x = Sum(), normal(7, 5)
    (sizes,) = [step.sizes for step in recorded(net, x).steps if step.sizes]
    parts = (x, net.layer(x), x + net.layer(x))
    assert sizes == pytest.approx([part.detach().square().mean().sqrt().item() for part in parts])
