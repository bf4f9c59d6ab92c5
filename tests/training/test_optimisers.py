"""Our optimisers against torch.optim, step by step; members that are not alive stay where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.training.optimisers import SGD, Adam, Optimiser, Pace

PAIRS: list[tuple[Optimiser, Callable[..., torch.optim.Optimizer], dict[str, Any]]] = [
    (Adam(), torch.optim.Adam, {}),
    (Adam(betas=(0.5, 0.9), eps=1e-3), torch.optim.Adam, {"betas": (0.5, 0.9), "eps": 1e-3}),
    (SGD(), torch.optim.SGD, {}),
    (SGD(momentum=0.9), torch.optim.SGD, {"momentum": 0.9}),
    (SGD(momentum=0.9, nesterov=True), torch.optim.SGD, {"momentum": 0.9, "nesterov": True}),
]
every = pytest.mark.parametrize(("ours", "theirs", "options"), PAIRS, ids=[str(pair[0]) for pair in PAIRS])
RATES = (1e-3, 0.1, 3.0)


def gradients(steps: int, *, scale: float = 1.0) -> Tensor:
    """Gradients of very different sizes, some of them zero."""
    draws = torch.randn(steps, 3, 8, generator=torch_generator("gradients"), dtype=torch.float64)
    draws[:, :, 3] = 0
    return scale * draws * 10.0 ** torch.arange(-6, 2, dtype=torch.float64)


@every
def test_every_step_is_torchs_with_each_members_own_rate(
    ours: Optimiser, theirs: Callable[..., torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    rows = torch.randn(3, 8, generator=torch_generator(0), dtype=torch.float64)
    copies = [nn.Parameter(row.clone()) for row in rows]
    optimisers = [theirs([copy], lr=rate, **options) for copy, rate in zip(copies, RATES, strict=True)]
    state = ours.start(rows)
    rate, alive = torch.tensor(RATES, dtype=torch.float64), torch.ones(3, dtype=torch.bool)
    for gradient in gradients(20):
        ours.step(rows, gradient.clone(), state, Pace(rate, alive))
        for copy, optimiser, own in zip(copies, optimisers, gradient, strict=True):
            copy.grad = own.clone()
            optimiser.step()
        torch.testing.assert_close(rows, torch.stack(copies).detach(), rtol=1e-13, atol=1e-13)


@every
def test_a_changing_rate_is_torchs_too(
    ours: Optimiser, theirs: Callable[..., torch.optim.Optimizer], options: dict[str, Any]
) -> None:
    rows = torch.zeros(3, 8, dtype=torch.float64)
    copy = nn.Parameter(rows.clone())
    optimiser = theirs([copy], lr=1.0, **options)
    state, alive = ours.start(rows), torch.ones(3, dtype=torch.bool)
    for number, gradient in enumerate(gradients(10)):
        rate = 0.1 / (1 + number)
        ours.step(rows, gradient.clone(), state, Pace(torch.full((3,), rate, dtype=torch.float64), alive))
        optimiser.param_groups[0]["lr"] = rate
        copy.grad = gradient.clone()
        optimiser.step()
    torch.testing.assert_close(rows, copy.detach(), rtol=1e-13, atol=1e-13)


@every
@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_a_dead_member_keeps_its_parameters_and_the_others_do_not_notice(
    ours: Optimiser, theirs: Callable[..., torch.optim.Optimizer], options: dict[str, Any], bad: float
) -> None:
    start = torch.randn(3, 8, generator=torch_generator(0), dtype=torch.float64)
    rate, alive = torch.tensor(RATES, dtype=torch.float64), torch.ones(3, dtype=torch.bool)
    healthy, hurt = start.clone(), start.clone()
    states = [ours.start(healthy), ours.start(hurt)]
    for number, gradient in enumerate(gradients(8)):
        ours.step(healthy, gradient.clone(), states[0], Pace(rate, alive))
        spoilt, living = gradient.clone(), alive.clone()
        if number >= 4:
            if number == 4:
                last = hurt[1].clone()
            spoilt[1, 2] = bad
            living[1] = False
        ours.step(hurt, spoilt, states[1], Pace(rate, living))
    assert torch.equal(hurt[[0, 2]], healthy[[0, 2]])
    assert torch.equal(hurt[1], last)
    assert all(bool(tensor.isfinite().all()) for tensor in states[1].values())


def test_steps_are_taken_in_place_and_gradients_left_alone() -> None:
    for ours, _, _ in PAIRS:
        rows, gradient = torch.ones(3, 8, dtype=torch.float64), gradients(1)[0]
        address, before = rows.data_ptr(), gradient.clone()
        ours.step(rows, gradient, ours.start(rows), Pace(torch.ones(3), torch.ones(3, dtype=torch.bool)))
        assert rows.data_ptr() == address
        assert not torch.equal(rows, torch.ones(3, 8, dtype=torch.float64))
        assert torch.equal(gradient, before)


def test_impossible_momenta_are_refused() -> None:
    with pytest.raises(Refused, match=r"momentum is -0\.1, but must be at least 0"):
        SGD(momentum=-0.1)
    with pytest.raises(Refused, match="Nesterov needs momentum; set momentum above 0"):
        SGD(nesterov=True)
