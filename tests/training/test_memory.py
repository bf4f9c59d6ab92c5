"""Memory: what training takes is counted beforehand, and members computed in parts train as they do together."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.architectures.thin import ThinNet
from skiplab.checks import Refused, TimeIsUp
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.training import Plan, memory, train
from skiplab.training.augmentation import CropAndFlip
from skiplab.training.checkpoints import Checkpoints
from skiplab.training.memory import Footprint, footprint, kept_bytes, members_at_once, training_bytes
from skiplab.training.regularisers import bias_targets
from skiplab.training.step import Step

SEEDS = (0, 1, 2, 3, 4)


def samples(*shape: int, count: int = 22) -> TensorSet:
    draw = torch_generator("samples")
    inputs = torch.randn(count, *shape, generator=draw, dtype=torch.float64)
    return TensorSet(inputs, torch.randint(3, (count,), generator=draw), 3, "noise", "noise")


def stack(**options: Any) -> Ensemble:
    def network(seed: int) -> ResidualNet:
        return ResidualNet(6, 5, 4, 3, generator=torch_generator(seed), dtype=torch.float64, **options)

    return Ensemble.of([network(seed) for seed in SEEDS])


# Counting -------------------------------------------------------------------------------------------------


def test_what_autograd_keeps_is_what_a_plain_network_needs_for_its_gradient() -> None:
    network = PlainNet(7, 5, 3, 4, generator=torch_generator(0), dtype=torch.float64)
    inputs, labels = torch.randn(11, 7, dtype=torch.float64), torch.zeros(11, dtype=torch.int64)
    # The inputs, three hidden layers, the log-probabilities; the labels and the sum of the criterion's weights.
    assert kept_bytes(network, inputs, labels) == 11 * (7 + 3 * 5 + 4) * 8 + 11 * 8 + 8


@pytest.mark.parametrize("shape", [(6,), (3, 16, 16)])
def test_counting_computes_nothing_and_finds_what_a_real_pass_keeps(shape: tuple[int, ...]) -> None:
    draw = torch_generator(1)
    network: nn.Module = ThinNet(1, generator=draw, image_size=16, outputs=3) if len(shape) > 1 else ResidualNet(
        6, 5, 4, 3, generator=draw, batch_norm_at=2
    )  # fmt: skip
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    inputs, labels = torch.randn(9, *shape), torch.zeros(9, dtype=torch.int64)
    counted = kept_bytes(network, inputs, labels)
    assert all(torch.equal(before[name], tensor) for name, tensor in network.state_dict().items())
    own = {each.data_ptr() for each in (*network.parameters(), *network.buffers())}
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = F.cross_entropy(network.train()(inputs), labels)
    real = sum(each.untyped_storage().nbytes() for where, each in kept.items() if where not in own)
    del loss
    assert counted == pytest.approx(real, rel=0.02)  # convolutions on a CPU keep a copy in their own layout


def test_a_footprint_grows_with_members_and_with_those_that_compute_at_once() -> None:
    size = footprint(stack().skeleton, samples(6), batch_size=10)
    parameters = 6 * 5 + 5 + 3 * (5 * 5 + 5) + 5 * 3 + 3
    assert size.samples == 22 * (6 * 8 + 8)
    assert size.state == memory.ROWS * 8 * parameters
    assert size.total(5) == size.samples + 5 * (size.state + size.passes)
    assert size.total(5, 2) == size.samples + 5 * size.state + 2 * size.passes
    assert footprint(stack().skeleton, samples(6), batch_size=20).passes == pytest.approx(
        2 * size.passes, rel=0.02
    )
    whole = footprint(stack().skeleton, samples(6), batch_size=1000)  # an epoch has no more than its samples
    assert whole == footprint(stack().skeleton, samples(6), batch_size=22)


def test_members_are_split_evenly_into_what_fits() -> None:
    size = Footprint(samples=100, state=10, passes=50)
    assert size.at_once(8, 100 + 80 + 8 * 50) == 8
    assert size.at_once(8, 100 + 80 + 7 * 50) == 4  # two parts of four, not seven and one
    assert size.at_once(8, 100 + 80 + 50) == 1
    with pytest.raises(
        Refused, match=r"8 networks take at least 230 bytes, but 229 bytes are to be had; take a"
    ):
        size.at_once(8, 229)


def test_networks_that_take_turns_anyway_are_counted_once() -> None:
    images = samples(3, 16, 16)
    network = ThinNet(1, generator=torch_generator(0), image_size=16, outputs=3)
    size = footprint(network, images, batch_size=10)
    assert training_bytes(network, images, 5, 10, "cpu") == size.total(5, 1)
    plain = stack().skeleton
    assert training_bytes(plain, samples(6), 5, 10, "cpu") == footprint(
        plain, samples(6), batch_size=10
    ).total(5)


# Splitting ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at_once", [2, 3, 1])
@pytest.mark.parametrize("norm", [None, 2])
def test_a_step_in_parts_is_the_step_of_all(at_once: int, norm: int | None) -> None:
    whole, parted = stack(batch_norm_at=norm), stack(batch_norm_at=norm)
    data = samples(6)
    steps = []
    for ensemble, together in ((whole, None), (parted, at_once)):
        ensemble.train()
        penalties = [bias_targets(ensemble, (0.1, 0.2, 0.3, 0.4, 0.5), 1.0, SEEDS)]
        plan = Plan(1, 5, SEEDS)
        steps.append(Step(ensemble, data, plan.optimiser, plan.criterion, penalties, None, at_once=together))
    for number in range(6):
        indices = torch.stack([torch.randperm(22, generator=torch_generator(s, number))[:7] for s in SEEDS])
        for step in steps:
            step.rate.fill_(1e-2)
            step(indices)
    for name, tensor in steps[0].tensors.items():
        torch.testing.assert_close(steps[1].tensors[name], tensor, rtol=1e-10, atol=1e-12)
    assert not torch.equal(parted.rows, stack().rows)


def test_augmented_images_are_cropped_alike_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    def trained() -> tuple[Tensor, Tensor]:
        nets = [
            ThinNet(1, generator=torch_generator(s), image_size=16, outputs=3, dtype=torch.float64)
            for s in SEEDS
        ]
        ensemble = Ensemble.of(nets, backend="batched")
        history = train(ensemble, samples(3, 16, 16), Plan(2, 5, SEEDS, augmentation=CropAndFlip(2)))
        return ensemble.rows, history.loss

    whole = trained()
    monkeypatch.setattr("skiplab.training.loop.members_at_once", lambda *given: 2)
    for one, other in zip(trained(), whole, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-10)


def test_training_that_does_not_fit_is_split_and_gives_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plan, data = Plan(3, 5, SEEDS), samples(6)
    whole = stack()
    expected = train(whole, data, plan)
    size = footprint(whole.skeleton, data, batch_size=5)
    monkeypatch.setattr("skiplab.training.memory.room_on", lambda device: size.total(5, 2))
    parted = stack()
    assert members_at_once(parted, data, 5, F.cross_entropy) == 2
    # Stopped after an epoch, it goes on from a checkpoint that knows nothing of parts.
    with pytest.raises(TimeIsUp):
        train(stack(), data, plan, checkpoints=Checkpoints(tmp_path), deadline=0.0)
    found = train(parted, data, plan, checkpoints=Checkpoints(tmp_path))
    torch.testing.assert_close(found.loss, expected.loss, rtol=1e-10, atol=0)
    torch.testing.assert_close(parted.rows, whole.rows, rtol=1e-10, atol=1e-12)
    monkeypatch.setattr("skiplab.training.memory.room_on", lambda device: size.total(5, 1) - 1)
    with pytest.raises(
        Refused, match=r"5 networks take at least .* smaller batch, or fewer networks per trial"
    ):
        train(stack(), data, plan)


def test_a_network_that_cannot_be_counted_trains_all_at_once() -> None:
    class Looks(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            if x.device.type == "meta":
                raise NotImplementedError("no numbers to look at")
            return super().forward(x)

    ensemble = Ensemble.of([Looks(6, 3).double() for _ in SEEDS])
    assert members_at_once(ensemble, samples(6), 5, F.cross_entropy) == 5
    assert train(ensemble, samples(6), Plan(1, 5, SEEDS)).loss.isfinite().all()


# On a GPU -------------------------------------------------------------------------------------------------

on_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
    pytest.mark.filterwarnings("default"),
]


@pytest.mark.parametrize("norm", [pytest.param(None, marks=on_gpu), pytest.param(2, marks=on_gpu)])
def test_a_graph_of_parts_trains_as_the_whole(norm: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    data = samples(6)
    data = TensorSet(data.inputs.to("cuda"), data.labels.to("cuda"), 3, "noise", "noise")
    found = []
    for at_once in (5, 2):
        monkeypatch.setattr(
            "skiplab.training.loop.members_at_once", lambda *given, together=at_once: together
        )
        ensemble = Ensemble.of(stack(batch_norm_at=norm).members(), device="cuda")
        found.append((ensemble, train(ensemble, data, Plan(2, 5, SEEDS))))
    (whole, expected), (parted, history) = found
    torch.testing.assert_close(parted.rows, whole.rows, rtol=1e-8, atol=1e-9)
    torch.testing.assert_close(history.loss, expected.loss, rtol=1e-8, atol=0)


@pytest.mark.parametrize(
    "backend", [pytest.param(name, marks=on_gpu) for name in ("fully connected", "convolutional")]
)
def test_training_stays_within_the_memory_that_was_said(backend: str) -> None:
    wide = backend == "fully connected"
    members, batch = (20, 500) if wide else (5, 64)
    draw, shape = torch_generator(0), (3072,) if wide else (3, 32, 32)
    data = TensorSet(
        torch.randn(2 * batch, *shape, generator=draw).to(torch.device("cuda")),
        torch.randint(10, (2 * batch,), generator=draw).to(torch.device("cuda")), 10, "noise", "noise",
    )  # fmt: skip
    build = partial(ResidualNet, 3072, 128, 30, 10) if wide else partial(ThinNet, 3)
    nets = [build(generator=torch_generator(seed)) for seed in range(members)]
    said = training_bytes(nets[0], data, members, batch, "cuda")
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_reserved()
    train(Ensemble.of(nets, device=torch.device("cuda")), data, Plan(2, batch, tuple(range(members))))
    taken = torch.cuda.max_memory_reserved() - before + data.inputs.nbytes + data.labels.nbytes
    assert said / 4 < taken <= said, f"said {said / 1e9:.2f} GB, taken {taken / 1e9:.2f} GB"
