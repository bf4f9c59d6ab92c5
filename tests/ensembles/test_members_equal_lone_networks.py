"""Member i equals the network built and trained alone with seed i: float64, 20 steps, 1e-9, both backends.

Alone means twice over: as an ensemble of one, and as a plain module in a plain PyTorch loop with torch.optim.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.training import Plan, train
from skiplab.training.loop import shuffles
from skiplab.training.optimisers import SGD, Adam, Optimiser

SEEDS = (0, 1, 2)
SAMPLES, BATCH, EPOCHS = 44, 10, 4  # five steps an epoch, the last on a smaller batch: 20 steps
RATE = 3e-3
THEIRS: dict[Optimiser, Callable[..., torch.optim.Optimizer]] = {
    Adam(): torch.optim.Adam,
    Adam(eps=1e-6): lambda p, lr: torch.optim.Adam(p, lr, eps=1e-6),
    SGD(): torch.optim.SGD,
    SGD(momentum=0.9): lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9),
    SGD(momentum=0.9, nesterov=True): lambda p, lr: torch.optim.SGD(p, lr, momentum=0.9, nesterov=True),
}
both = pytest.mark.parametrize("backend", ["batched", "loop"])


def build(name: str, seed: int) -> nn.Module:
    return examples(torch.float64)[name](torch_generator(seed))


def samples(name: str) -> TensorSet:
    """Noise; regression targets for networks with one output, else classes."""
    draw = torch_generator("samples")
    inputs = torch.randn(SAMPLES, *ARCHITECTURES[name].input_shape, generator=draw, dtype=torch.float64)
    outputs = build(name, 0).eval()(inputs[:1]).shape[1]
    if outputs == 1:
        labels = torch.randn(SAMPLES, 1, generator=draw, dtype=torch.float64)
    else:
        labels = torch.randint(outputs, (SAMPLES,), generator=draw)
    return TensorSet(inputs, labels, outputs, "noise", "noise")


def criterion_for(data: TensorSet) -> Callable[[Tensor, Tensor], Tensor]:
    return F.mse_loss if data.labels.is_floating_point() else F.cross_entropy


def train_alone(module: nn.Module, seed: int, data: TensorSet, optimiser: Optimiser) -> list[float]:
    """Train a module as most people do; return the mean loss of each epoch."""
    criterion = criterion_for(data)
    theirs = THEIRS[optimiser](module.parameters(), lr=RATE)
    means = []
    module.train()
    for epoch in range(EPOCHS):
        total = 0.0
        for indices in shuffles((seed,), epoch, SAMPLES, torch.device("cpu"))[0].split(BATCH):
            theirs.zero_grad()
            loss = criterion(module(data.inputs[indices]), data.labels[indices])
            loss.backward()
            theirs.step()
            total += loss.item() * len(indices)
        means.append(total / SAMPLES)
    return means


def assert_equal_states(one: nn.Module, other: nn.Module) -> None:
    theirs = other.state_dict()
    for name, tensor in one.state_dict().items():
        torch.testing.assert_close(
            tensor, theirs[name], rtol=1e-9, atol=1e-9, msg=lambda m, n=name: f"{n}: {m}"
        )


def check(name: str, backend: str, optimiser: Optimiser) -> None:
    data = samples(name)
    settings = {"rate": RATE, "optimiser": optimiser, "criterion": criterion_for(data)}
    ensemble = Ensemble.of([build(name, seed) for seed in SEEDS], backend=backend)
    history = train(ensemble, data, Plan(EPOCHS, BATCH, SEEDS, **settings))
    assert not history.diverged.any()
    for index, seed in enumerate(SEEDS):
        member, start = ensemble.member(index), build(name, seed)
        assert any(
            not torch.equal(a, b) for a, b in zip(member.parameters(), start.parameters(), strict=True)
        )

        lone = Ensemble.of([build(name, seed)], backend=backend)
        lone_history = train(lone, data, Plan(EPOCHS, BATCH, (seed,), **settings))
        assert_equal_states(member, lone.member(0))
        torch.testing.assert_close(history.loss[:, index], lone_history.loss[:, 0], rtol=1e-9, atol=1e-9)

        plain = build(name, seed)
        losses = train_alone(plain, seed, data, optimiser)
        assert_equal_states(member, plain)
        torch.testing.assert_close(history.loss[:, index].tolist(), losses, rtol=1e-9, atol=1e-9)


def every_architecture_and_backend() -> list[Any]:
    """Each with the backend that it gets by itself; the other way round in the slow suites."""
    found = []
    for name, example in ARCHITECTURES.items():
        own = "loop" if len(example.input_shape) == 3 else "batched"
        found += [
            pytest.param(name, backend, marks=[] if backend == own else [pytest.mark.slow])
            for backend in ("batched", "loop")
        ]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "backend"), every_architecture_and_backend())
def test_with_adam(name: str, backend: str) -> None:
    # A bias before a batch normalisation has gradient 0; Adam divides what rounding leaves of it, some 1e-15,
    # by ε = 1e-8 and takes steps of 1e-10 in any direction. A larger ε keeps that noise below what we ask for.
    check(name, backend, Adam(eps=1e-6) if name.endswith("-bn") else Adam())


@both
@pytest.mark.parametrize("name", ["residual-bn", "hyper-residual", "resnet"])
@pytest.mark.parametrize("optimiser", [kind for kind in THEIRS if isinstance(kind, SGD)], ids=str)
def test_with_sgd(name: str, optimiser: Optimiser, backend: str) -> None:
    check(name, backend, optimiser)


@both
def test_running_statistics_are_among_what_is_compared(backend: str) -> None:
    data = samples("residual-bn")
    ensemble = Ensemble.of([build("residual-bn", seed) for seed in SEEDS], backend=backend)
    train(ensemble, data, Plan(EPOCHS, BATCH, SEEDS))
    state = ensemble.member(1).state_dict()
    assert state["hidden.1.norm.num_batches_tracked"].item() == 20
    assert bool((state["hidden.1.norm.running_mean"] != 0).all())
    assert not torch.equal(*ensemble.fixed["hidden.1.norm.running_mean"][:2])


def test_backends_agree_on_a_network_of_ones_own_with_frozen_and_tied_parameters() -> None:
    def own(seed: int) -> nn.Module:
        with torch.random.fork_rng(devices=[]):
            torch.random.default_generator.manual_seed(seed)
            net = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 6), nn.LayerNorm(6), nn.Linear(6, 3))
        net[2].weight = net[0].weight
        net[2].bias.requires_grad_(False)
        return net.double()

    data = samples("plain")
    for backend in ("batched", "loop"):
        ensemble = Ensemble.of([own(seed) for seed in SEEDS], backend=backend)
        train(ensemble, data, Plan(EPOCHS, BATCH, SEEDS, rate=RATE))
        for index, seed in enumerate(SEEDS):
            plain, member = own(seed), ensemble.member(index)
            train_alone(plain, seed, data, Adam())
            assert_equal_states(member, plain)
            assert member[2].weight is member[0].weight
            assert torch.equal(member[2].bias, own(seed)[2].bias)
