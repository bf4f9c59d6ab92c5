"""T and T⁻¹ in float64: the same function, the same gradients, the same training run with the matching decay."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

from skiplab.architectures.initialisers import KWI, standard_normal
from skiplab.architectures.resnet import ResNet
from skiplab.architectures.simplified import (
    SimplifiedPlnMLP,
    SimplifiedPlnNet,
    SimplifiedResMLP,
    SimplifiedResNet,
)
from skiplab.architectures.transfer import diagonal_of, id_entries, to_plain, to_residual, with_identities
from skiplab.checks import Refused
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.training import Plan, train
from skiplab.training.optimisers import SGD, Adam, Optimiser
from skiplab.training.regularisers import weight_decay

IMAGES: dict[str, Any] = {"blocks": 2, "filters": (4, 8, 8), "outputs": 3, "dtype": torch.float64}
ROWS: dict[str, Any] = {"inputs": 5, "widths": (6, 6, 3, 8), "outputs": 3, "dtype": torch.float64}
PAIRS: dict[str, tuple[type[nn.Module], type[nn.Module], dict[str, Any], tuple[int, ...]]] = {
    "convolutional": (SimplifiedResNet, SimplifiedPlnNet, IMAGES, (3, 8, 12)),
    "fully connected": (SimplifiedResMLP, SimplifiedPlnMLP, ROWS, (5,)),
}
both = pytest.mark.parametrize("kind", PAIRS)


def residual(kind: str, seed: int = 0) -> nn.Module:
    """With KWI, so that the kernels are no small change beside the identity."""
    make, _, sizes, _ = PAIRS[kind]
    return make(**sizes, generator=torch_generator(seed), init=KWI())


def inputs(kind: str, count: int = 6) -> Tensor:
    return standard_normal((count, *PAIRS[kind][3]), torch_generator("inputs"))


def samples(kind: str, count: int = 44) -> TensorSet:
    labels = torch.randint(3, (count,), generator=torch_generator("labels"))
    return TensorSet(inputs(kind, count), labels, 3, "noise", "noise")


@both
def test_a_transferred_network_computes_the_same(kind: str) -> None:
    net, x = residual(kind), inputs(kind)
    plain = to_plain(net)
    assert type(plain) is PAIRS[kind][1]
    torch.testing.assert_close(plain(x), net(x), rtol=1e-12, atol=1e-12)
    # Without T the two functions differ, so that the comparison above could have failed.
    plain.load_state_dict(net.state_dict())
    assert not torch.allclose(plain(x), net(x), rtol=1e-2, atol=1e-2)


@both
def test_transferring_back_and_forth_changes_nothing(kind: str) -> None:
    net = residual(kind)
    again = to_residual(to_plain(net))
    assert type(again) is type(net)
    for (name, ours), theirs in zip(net.named_parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-15, msg=name)
    plain = to_plain(net)
    assert sum(p.numel() for p in plain.parameters()) == sum(p.numel() for p in net.parameters())


@both
def test_gradients_are_equal_through_the_chain_rule(kind: str) -> None:
    """dL/dr of L(p(x, r + ρ)), differentiated through the map, of the residual network, and dL/dp at p = T(r)."""
    net, x, y = residual(kind), inputs(kind), torch.arange(6) % 3
    plain, added = to_plain(net), id_entries(net)
    F.cross_entropy(net(x), y).backward()
    F.cross_entropy(plain(x), y).backward()
    r = {name: p.detach().clone().requires_grad_() for name, p in net.named_parameters()}
    mapped = {name: tensor + added[name] if name in added else tensor for name, tensor in r.items()}
    F.cross_entropy(functional_call(plain, mapped, (x,)), y).backward()
    for name, parameter in net.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad.abs().max() > 0
        torch.testing.assert_close(plain.get_parameter(name).grad, parameter.grad, rtol=1e-11, atol=1e-13)
        torch.testing.assert_close(r[name].grad, parameter.grad, rtol=1e-11, atol=1e-13)


def pair_of_runs(
    kind: str, optimiser: Optimiser, backend: str, *, around: bool, rate: float
) -> tuple[Tensor, Tensor]:
    """The rows of plain and of residual networks, transferred, after 20 steps; also the losses on the way."""
    seeds = (0, 1)
    first = Ensemble.of([residual(kind, seed) for seed in seeds], backend=backend)
    second = first.mapped(to_plain)
    assert second.backend == backend
    data, ends = samples(kind), []
    for nets, target in ((first, None), (second, id_entries(second.skeleton) if around else None)):
        decay = weight_decay(nets, 0.1, around=target, biases=True)
        plan = Plan(4, 10, seeds, rate=rate, optimiser=optimiser, penalties=[decay])
        assert not train(nets, data, plan).diverged.any()
        ends.append(nets)
    return ends[0].mapped(to_plain).rows, ends[1].rows


@both
@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("optimiser", [SGD(momentum=0.9), Adam(eps=1e-6)], ids=str)
def test_whole_training_runs_stay_equivalent(kind: str, optimiser: Optimiser, backend: str) -> None:
    rate = 0.02 if isinstance(optimiser, SGD) else 3e-3
    carried, plain = pair_of_runs(kind, optimiser, backend, around=True, rate=rate)
    torch.testing.assert_close(carried, plain, rtol=1e-9, atol=1e-9)


@both
def test_with_the_usual_decay_the_two_part(kind: str) -> None:
    """The landscape of the risk is the same, that of the cost is not."""
    carried, plain = pair_of_runs(kind, SGD(momentum=0.9), "loop", around=False, rate=0.02)
    assert (carried - plain).abs().max() > 1e-3


def test_id_entries_are_as_many_as_the_fewer_channels() -> None:
    added = id_entries(residual("convolutional"))
    assert list(added) == [f"blocks.{k}.conv.weight" for k in range(6)]
    assert [int(rho.sum()) for rho in added.values()] == [4, 4, 4, 8, 8, 8]
    strided = added["blocks.2.conv.weight"]
    assert strided.nonzero().tolist() == [[c, c, 1, 1] for c in range(4)]
    rows = id_entries(residual("fully connected"))
    assert [int(rho.sum()) for rho in rows.values()] == [6, 3, 3]


@both
def test_identities_come_in_doses(kind: str) -> None:
    net = residual(kind)
    plain = PAIRS[kind][1](**PAIRS[kind][2], generator=torch_generator(9))
    plain.load_state_dict(net.state_dict())
    x, before = inputs(kind), plain(inputs(kind))
    torch.testing.assert_close(with_identities(plain)(x), net(x), rtol=1e-12, atol=1e-12)
    half = with_identities(with_identities(plain, 0.25), 0.75)
    torch.testing.assert_close(half(x), net(x), rtol=1e-12, atol=1e-12)
    assert torch.equal(plain(x), before)


@both
def test_shuffled_identities_read_other_channels(kind: str) -> None:
    plain = to_plain(residual(kind))
    shuffled = with_identities(plain, 2.0, shuffled=torch_generator("shuffled"))
    for name, entries in id_entries(plain).items():
        added = (shuffled.get_parameter(name) - plain.get_parameter(name)).detach() / 2
        torch.testing.assert_close(added.flatten().sort().values, entries.flatten().sort().values)
        # Every channel is read once at most, at the centre of the window, and not all by their own number.
        centre = added if added.ndim == 2 else added[:, :, 1, 1]
        assert centre.sum(0).max() <= 1 + 1e-12
        assert centre.sum(1).max() <= 1 + 1e-12
        torch.testing.assert_close(centre.sum(), entries.sum())
    moved = [
        name
        for name, entries in id_entries(plain).items()
        if not torch.allclose((shuffled.get_parameter(name) - plain.get_parameter(name)) / 2, entries)
    ]
    assert len(moved) >= 2
    with pytest.raises(Refused, match=r"a SimplifiedRes.* was given.*; pass a SimplifiedPln"):
        with_identities(residual(kind))


def test_the_diagonal_is_a_view() -> None:
    kernel = torch.zeros(3, 2, 5, 3)
    diagonal_of(kernel).add_(1.0)
    assert kernel.nonzero().tolist() == [[0, 0, 2, 1], [1, 1, 2, 1]]


def test_the_copy_has_its_own_tensors_mode_and_frozen_parameters() -> None:
    net = residual("fully connected").eval()
    net.get_parameter("output.weight").requires_grad_(False)
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    plain = to_plain(net)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.zero_()
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert not plain.training
    assert [name for name, p in plain.named_parameters() if not p.requires_grad] == ["output.weight"]


def test_networks_without_a_twin_are_refused() -> None:
    plain = to_plain(residual("convolutional"))
    with pytest.raises(Refused, match=r"a SimplifiedPlnNet was given.*; pass a SimplifiedResNet or a Simpl"):
        to_plain(plain)
    with pytest.raises(Refused, match=r"a SimplifiedResNet was given.*; pass a SimplifiedPlnNet"):
        to_residual(residual("convolutional"))
    full = ResNet(1, generator=torch_generator(0), filters=(4,))
    with pytest.raises(Refused, match="a ResNet was given, but T is defined for the simplified networks"):
        id_entries(full)
