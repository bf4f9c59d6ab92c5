"""What is told of long work: how much of it is done, and how long the rest takes."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import skiplab as sl
from skiplab import telling


@pytest.mark.parametrize(("seconds", "text"), [(40, "40 s"), (89, "89 s"), (360, "6 min"), (5400, "1.5 h")])
def test_durations_read_as_a_person_writes_them(seconds: float, text: str) -> None:
    assert telling.duration(seconds) == text


def test_the_rest_takes_as_long_as_what_is_done_did(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(telling.time, "monotonic", lambda: now[0])
    told: list[str] = []
    count = telling.Counted(told.append, 80, "products")
    now[0] += 30
    count.add(20)
    doubled = telling.Counted(told.append, 4, "steps", at_most=True).after(lambda number: 2 * number)
    now[0] += 100
    assert doubled(3) == 6
    count.add(60)
    assert told == [
        "20 of 80 products, about 2 min more",
        "1 of at most 4 steps, at most 5 min more",
        "80 of 80 products",
    ]


def test_nobody_has_to_listen() -> None:
    telling.Counted(None, 3, "draws").add()


SLOW = {
    "hessian_extremes": "steps",
    "hessian_trace": "products",
    "interlayer_cushions": "layers, batch 2",
    "permutation_symmetry": "permutations, batch 2",
    "rescaling_symmetry": "rescalings by 10, batch 2",
    "weight_noise": "layers, batch 2",
    "hessian_spectrum": "eigenvalues",
}


@pytest.mark.parametrize("name", SLOW)
def test_measurements_that_may_take_long_tell_how_far_they_are(name: str) -> None:
    network = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
    batches = [(torch.randn(6, 4), torch.arange(6) % 3)] * 2
    how = {} if name == "interlayer_cushions" else {"criterion": nn.CrossEntropyLoss()}
    told: list[str] = []
    getattr(sl, name)(network, batches, tell=told.append, **how)
    assert SLOW[name] in told[-1]
    if name == "hessian_spectrum":
        told.clear()
        sl.hessian_spectrum(
            network, batches, tell=told.append, method=sl.Lanczos(probes=1, max_steps=9), **how
        )
        assert told[1:3] == [f"{step} of at most 9 Lanczos steps" for step in (1, 2)]
