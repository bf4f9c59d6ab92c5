"""On a GPU: CUDA graphs and compiled passes equal eager ones, and a resumed run the uninterrupted one.

Run with ``python -m pytest -m gpu tests/training``; without a CUDA device all of it is skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.architectures.fully_connected import HyperResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.architectures.thin import ThinNet
from skiplab.checks import TimeIsUp
from skiplab.data import TensorSet, tensors
from skiplab.ensembles import Ensemble
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.training import History, Plan, train
from skiplab.training.augmentation import CropAndFlip
from skiplab.training.checkpoints import Checkpoints
from skiplab.training.loop import Callback, Shuffles, shuffles
from skiplab.training.optimisers import SGD, Adam, Optimiser
from skiplab.training.regularisers import Penalty, bias_targets, weight_decay
from skiplab.training.schedules import AutoDrop
from skiplab.training.step import Step

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    # torch.compile warns about the machine (tensor cores, number of SMs) and about torch itself.
    pytest.mark.filterwarnings("default"),
]
SEEDS = (0, 1, 2)
SAMPLES, BATCH, EPOCHS = 22, 6, 3  # four steps an epoch, the last on four samples
STEPS = 4
CUDA, CPU = torch.device("cuda"), torch.device("cpu")
# ε as in tests/ensembles/test_members_equal_lone_networks.py: biases before a normalisation have gradient 0.
ADAM = Adam(eps=1e-6)
OPTIMISERS = [ADAM, SGD(), SGD(momentum=0.9), SGD(momentum=0.9, nesterov=True)]


def samples(name: str, device: torch.device = CUDA) -> TensorSet:
    draw = torch_generator("samples")
    inputs = torch.randn(SAMPLES, *ARCHITECTURES[name].input_shape, generator=draw, dtype=torch.float64)
    labels = torch.randint(3, (SAMPLES,), generator=draw)
    return TensorSet(inputs.to(device), labels.to(device), 3, "noise", "noise")


def stack(name: str, device: torch.device = CUDA) -> Ensemble:
    build = examples(torch.float64)[name]
    nets = [build(torch_generator(seed)) for seed in SEEDS]
    return Ensemble.of(nets, backend="batched", device=device).train()


def penalties(name: str, ensemble: Ensemble) -> Sequence[Penalty]:
    found = [weight_decay(ensemble, (0.0, 0.01, 0.1))]
    return found if name == "resnet" else [*found, bias_targets(ensemble, 0.1, 0.5, SEEDS)]


def assert_close(one: Ensemble, other: Ensemble) -> None:
    torch.testing.assert_close(one.rows.cpu(), other.rows.cpu(), rtol=1e-9, atol=1e-9)
    for name, tensor in one.fixed.items():
        torch.testing.assert_close(tensor.cpu(), other.fixed[name].cpu(), rtol=1e-9, atol=1e-9)


def take_steps(name: str, optimiser: Optimiser, device: torch.device, *, eager: bool) -> Step:
    """Two epochs of steps on the same samples whatever the device, as graphs or one kernel at a time."""
    ensemble = stack(name, device)
    augmentation = CropAndFlip(1) if name == "resnet" else None
    step = Step(
        ensemble, samples(name, device), optimiser, F.cross_entropy, penalties(name, ensemble), augmentation
    )
    for epoch in range(2):
        step.rate.copy_(torch.tensor([0.01, 0.02, 0.03]) / (1 + epoch))
        if augmentation is not None:
            step.draws.copy_(augmentation.draw(SEEDS, epoch, SAMPLES, CPU))
        for indices in shuffles(SEEDS, epoch, SAMPLES, CPU).to(device).split(BATCH, dim=1):
            (step._step if eager else step)(indices)
    return step


@pytest.mark.parametrize("name", ["residual-bn", "resnet"])
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_a_graph_equals_eager_steps_on_the_gpu_and_on_the_cpu(name: str, optimiser: Optimiser) -> None:
    graphed = take_steps(name, optimiser, CUDA, eager=False)
    assert set(graphed.graphs) == {6, 4}  # one graph a batch size
    for device in (CUDA, CPU):
        eager = take_steps(name, optimiser, device, eager=True)
        assert eager.graphs == {}
        assert_close(graphed.ensemble, eager.ensemble)
        assert graphed.tensors.keys() == eager.tensors.keys()
        for key, tensor in eager.tensors.items():
            torch.testing.assert_close(graphed.tensors[key].cpu(), tensor.cpu(), rtol=1e-9, atol=1e-9)


def test_capturing_takes_exactly_one_step() -> None:
    ensemble = stack("residual-bn")
    step = Step(ensemble, samples("residual-bn"), SGD(), F.cross_entropy, (), None)
    step.rate.fill_(0.1)
    step(shuffles(SEEDS, 0, SAMPLES, CUDA)[:, :BATCH])
    assert ensemble.fixed["hidden.1.norm.num_batches_tracked"].tolist() == [1, 1, 1]


def test_shuffles_drawn_beside_steps_are_those_of_their_epoch() -> None:
    count, busy = 50_000, torch.rand(4096, 4096, device=CUDA)
    orders = Shuffles(SEEDS, count, CUDA)
    for epoch in range(5):
        found = orders.of(epoch)
        for _ in range(20):  # so that the next orders are drawn while these are waiting to be read
            busy = (busy @ busy).tanh()
        read = found.clone()
        del found
        orders.begin(epoch + 1)
        assert torch.equal(read, shuffles(SEEDS, epoch, count, CUDA))


@pytest.mark.parametrize(("mixed", "checkpoint_every"), [(False, None), (False, 2), (True, None)])
def test_thin_networks_train_as_graphs_on_a_schedule_of_their_own(
    mixed: bool, checkpoint_every: int | None, tmp_path: Path
) -> None:
    draw = torch_generator("thin")
    images = torch.randn(40, 3, 16, 16, generator=draw).to(CUDA)
    data = TensorSet(images, torch.randint(10, (40,), generator=draw).to(CUDA), 10, "noise", "noise")
    schedule = AutoDrop(window=2, patience=1, threshold=10.0)  # drops after every epoch from the second on
    plan = Plan(4, 20, SEEDS, rate=1e-3, schedule=schedule, augmentation=CropAndFlip(1), mixed=mixed)

    def trained(checkpoints: Checkpoints | None = None, deadline: float | None = None) -> Ensemble:
        nets = [
            ThinNet(1, generator=torch_generator(s), image_size=16, checkpoint_every=checkpoint_every)
            for s in SEEDS
        ]
        ensemble = Ensemble.of(nets, device=CUDA)
        history = train(ensemble, data, plan, checkpoints=checkpoints, deadline=deadline)
        assert bool(history.loss.isfinite().all())
        return ensemble

    whole = trained()
    for _ in range(plan.epochs - 1):
        with pytest.raises(TimeIsUp):
            trained(Checkpoints(tmp_path), deadline=0.0)
    resumed = trained(Checkpoints(tmp_path))
    torch.testing.assert_close(
        resumed.rows, whole.rows, rtol=1e-4, atol=1e-4
    )  # convolutions sum as they please


def run(
    name: str, optimiser: Optimiser = ADAM, *, checkpoints: Checkpoints | None = None, **options: Any
) -> tuple[Ensemble, History]:
    ensemble, data = stack(name), samples(name)

    def measure(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
        norms = gradient_norms(ensemble, (data.inputs, data.labels), criterion=F.cross_entropy, mode="train")
        return [{"step": step, "norms": norms.mean.tolist()}]

    plan = Plan(
        EPOCHS,
        BATCH,
        SEEDS,
        rate=options.pop("rate", (0.01, 0.02, 0.03)),
        optimiser=optimiser,
        augmentation=CropAndFlip(1) if name == "resnet" else None,
        penalties=penalties(name, ensemble),
        callbacks=[Callback(frozenset({0, 5, STEPS * EPOCHS}), measure)],
    )
    return ensemble, train(ensemble, data, plan, checkpoints=checkpoints, **options)


@pytest.mark.parametrize("name", ["residual-bn", "resnet"])
@pytest.mark.parametrize("optimiser", [ADAM, SGD(momentum=0.9)], ids=str)
def test_compiled_passes_equal_eager_ones(
    name: str, optimiser: Optimiser, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled = []
    original = Ensemble.compile
    monkeypatch.setattr(Ensemble, "compile", lambda self: (compiled.append(self), original(self))[1])
    monkeypatch.setattr("skiplab.training.loop.COMPILE_FROM", 10**12)
    eager, eager_history = run(name, optimiser)
    assert compiled == []
    monkeypatch.setattr("skiplab.training.loop.COMPILE_FROM", 0)
    fused, history = run(name, optimiser)
    assert compiled == [fused]
    assert_close(fused, eager)
    torch.testing.assert_close(history.loss, eager_history.loss, rtol=1e-9, atol=1e-9)
    assert torch.equal(history.accuracy, eager_history.accuracy)
    moved = [key for key in fused.fixed if key.endswith("running_mean")]
    assert moved
    assert all(bool((fused.fixed[key] != 0).any()) for key in moved)
    assert all(
        tensor.tolist() == [STEPS * EPOCHS] * 3
        for key, tensor in fused.fixed.items()
        if key.endswith("num_batches_tracked")
    )


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("optimiser", [ADAM, SGD(momentum=0.9)], ids=str)
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(
    optimiser: Optimiser, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many steps as make the whole run compile, but more than a resumed one has left.
    threshold = STEPS * EPOCHS * len(SEEDS) if compiled else 10**12
    monkeypatch.setattr("skiplab.training.loop.COMPILE_FROM", threshold)
    whole, expected = run("residual-bn", optimiser)
    for _ in range(EPOCHS - 1):
        with pytest.raises(TimeIsUp):
            run("residual-bn", optimiser, checkpoints=Checkpoints(tmp_path), deadline=0.0)
    resumed, history = run("residual-bn", optimiser, checkpoints=Checkpoints(tmp_path))
    assert torch.equal(resumed.rows, whole.rows)
    for key, tensor in whole.fixed.items():
        assert torch.equal(resumed.fixed[key], tensor)
    assert torch.equal(history.loss, expected.loss)
    assert torch.equal(history.accuracy, expected.accuracy)
    assert history.rows == expected.rows


def test_a_run_does_not_depend_on_how_many_ran_before_it() -> None:
    # torch.compile gives up after eight shapes of one function and computes eagerly, with other roundings.
    def lone(size: int) -> torch.Tensor:
        build = examples(torch.float32)["residual"]
        ensemble = Ensemble.of([build(torch_generator(seed)) for seed in range(size)], device=CUDA)
        data = samples("residual")
        data = TensorSet(data.inputs.float(), data.labels, 3, "noise", "noise")
        train(ensemble, data, Plan(EPOCHS, BATCH, tuple(range(size)), rate=0.01))
        return ensemble.rows

    torch.compiler.reset()  # as in a new process
    first = lone(13)
    torch.compiler.reset()
    for size in range(2, 13):
        lone(size)
    assert torch.equal(lone(13), first)


@pytest.mark.parametrize("optimiser", [ADAM, SGD(momentum=0.9)], ids=str)
def test_a_diverged_member_is_frozen_and_its_neighbours_do_not_notice(optimiser: Optimiser) -> None:
    healthy, _ = run("residual-bn", optimiser)
    ensemble, history = run("residual-bn", optimiser, rate=(0.01, 1e200, 0.03))
    assert history.diverged.tolist() == [False, True, False]
    assert bool(ensemble.rows.isfinite().all())
    torch.testing.assert_close(ensemble.rows[[0, 2]], healthy.rows[[0, 2]], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("device", [CPU, CUDA], ids=str)
def test_measuring_leaves_the_generators_of_all_devices_alone(device: torch.device) -> None:
    net = torch.nn.Sequential(torch.nn.Dropout(0.5), torch.nn.Linear(4, 4)).to(device)
    subject = Subject.of(net, train_mode=True)
    x = torch.ones(8, 4, device=device)
    before = (torch.random.get_rng_state(), torch.cuda.get_rng_state())
    first = subject.outputs(x)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert torch.equal(before[1], torch.cuda.get_rng_state())
    torch.rand(1, device=device)
    assert torch.equal(first, subject.outputs(x))
    assert bool((first[0, 0] != first[0]).any())  # dropout was on


# Fused passes ------------------------------------------------------------------------------------------------


def fully_connected(size: int) -> Ensemble:
    nets = [
        HyperResidualNet(64, 32, 6, 10, generator=torch_generator(seed), init=Glorot(gain=0.5))
        for seed in range(size)
    ]
    return Ensemble.of(nets, device=CUDA)


def digits() -> TensorSet:
    return tensors("digits", "train", device="cuda")


def test_fused_steps_equal_portable_ones_as_graphs() -> None:
    data, found = digits(), []
    for fused in (True, False):
        ensemble = fully_connected(5)
        penalty = bias_targets(ensemble, 0.01, 0.3, range(5))
        plan = Plan(2, 100, tuple(range(5)), rate=1e-3, penalties=[penalty], fused=fused)
        history = train(ensemble, data, plan)
        found.append((ensemble.rows, history.loss))
    # Adam divides by the size of a gradient, so where that is rounding alone (.2 % of the weights on an H200) a step
    # may go either way.
    same = torch.isclose(found[0][0], found[1][0], rtol=1e-2, atol=1e-4)
    assert same.double().mean() > 0.99
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-3, atol=1e-3)


def test_mixed_precision_compiles_nothing_by_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("torch.compile was called")

    monkeypatch.setattr(torch, "compile", refuse)
    monkeypatch.setattr("skiplab.training.loop.COMPILE_FROM", 0)
    train(fully_connected(5), digits(), Plan(1, 100, tuple(range(5)), mixed=True))


@pytest.mark.parametrize("optimiser", [Adam(), SGD(momentum=0.9)], ids=str)
def test_a_resumed_fused_run_is_the_uninterrupted_one_bit_for_bit(
    optimiser: Optimiser, tmp_path: Path
) -> None:
    def one(**options: Any) -> tuple[Ensemble, History]:
        ensemble = fully_connected(5)
        plan = Plan(3, 100, tuple(range(5)), rate=1e-3, optimiser=optimiser, mixed=True)
        return ensemble, train(ensemble, digits(), plan, **options)

    whole, expected = one()
    for _ in range(2):
        with pytest.raises(TimeIsUp):
            one(checkpoints=Checkpoints(tmp_path), deadline=0.0)
    resumed, history = one(checkpoints=Checkpoints(tmp_path))
    assert torch.equal(resumed.rows, whole.rows)
    assert torch.equal(history.loss, expected.loss)


def test_bfloat16_learns_as_float32_does() -> None:
    seeds, data = tuple(range(60)), digits()
    accuracy = []
    for mixed in (True, False):
        plan = Plan(8, 100, seeds, rate=1e-3, mixed=mixed)
        accuracy.append(train(fully_connected(60), data, plan).accuracy)
    assert float(accuracy[1][-1].mean()) > 0.9
    # Two one-sided tests at 5 %, paired by seed, in every epoch: a margin of .3 per cent.
    differences = accuracy[0] - accuracy[1]
    error = differences.std(1) / len(seeds) ** 0.5
    assert bool((differences.mean(1).abs() + 1.671 * error < 0.003).all())
