"""Stacking, calling, taking members out, saving; refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.architectures.skip_matrices import Orthogonal
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.ensembles.ensemble import map_members
from skiplab.ensembles.stacking import drawn
from skiplab.randomness import torch_generator
from skiplab.reproduction.arithmetic import steady_arithmetic

both = pytest.mark.parametrize("backend", ["batched", "loop"])


def build(name: str, seed: int = 0) -> Any:
    net = examples(torch.float64)[name](torch_generator(seed))
    for layer in net.modules():
        if isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d):
            # Different statistics in each member, so that mixing them up would show.
            torch.nn.init.normal_(layer.running_mean, generator=torch_generator(seed))
    return net


def noise(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch_generator("noise"), dtype=torch.float64)


def three(name: str, backend: str) -> tuple[list[nn.Module], Ensemble]:
    nets = [build(name, seed).eval() for seed in range(3)]
    return nets, Ensemble.of(nets, backend=backend)


@both
@pytest.mark.parametrize("name", ["residual-bn", "resnet"])
def test_outputs_are_those_of_the_modules(name: str, backend: str) -> None:
    nets, ensemble = three(name, backend)
    x = noise(3, 5, *ARCHITECTURES[name].input_shape)
    expected = torch.stack([net(x[0]) for net in nets])
    torch.testing.assert_close(ensemble(x[0]), expected, rtol=1e-12, atol=1e-12)
    expected = torch.stack([net(part) for net, part in zip(nets, x, strict=True)])
    torch.testing.assert_close(ensemble(x, shared=False), expected, rtol=1e-12, atol=1e-12)


@both
@pytest.mark.parametrize("name", ["residual-bn", "resnet"])
def test_gradients_and_statistics_are_those_of_the_modules(name: str, backend: str) -> None:
    nets, ensemble = three(name, backend)
    ensemble.train()
    x = noise(3, 5, *ARCHITECTURES[name].input_shape)
    y = torch.randint(3, (3, 5), generator=torch_generator(1))
    losses, outputs, rows = ensemble.gradients(x, y, F.cross_entropy)
    named = ensemble.layout.unpack(rows)
    for index, net in enumerate(nets):
        output = net.train()(x[index])
        loss = F.cross_entropy(output, y[index])
        loss.backward()
        torch.testing.assert_close(losses[index], loss, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(outputs[index], output, rtol=1e-10, atol=1e-12)
        for key, parameter in net.named_parameters():
            torch.testing.assert_close(named[key][index], parameter.grad, rtol=1e-9, atol=1e-11)
        for key, buffer in net.named_buffers():
            torch.testing.assert_close(ensemble.fixed[key][index], buffer, rtol=1e-12, atol=1e-12)
    assert not losses.requires_grad
    assert not outputs.requires_grad


def test_a_parameter_that_the_forward_pass_does_not_use_has_gradient_zero() -> None:
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.Linear(2, 1).double(), nn.Linear(2, 1).double()

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    for backend in ("batched", "loop"):
        ensemble = Ensemble.of([Idle(), Idle()], backend=backend)
        x = noise(2, 4, 2)
        _, _, rows = ensemble.gradients(x, torch.zeros(2, 4, 1, dtype=torch.float64), F.mse_loss)
        named = ensemble.layout.unpack(rows)
        assert bool((named["idle.weight"] == 0).all())
        assert bool((named["used.weight"] != 0).all())


@both
def test_a_member_is_an_ordinary_module_with_its_own_tensors(backend: str) -> None:
    nets, ensemble = three("residual-bn", backend)
    rows = ensemble.rows.clone()
    member = ensemble.member(-1)
    assert type(member) is type(nets[2])
    state, expected = member.state_dict(), nets[2].state_dict()
    assert list(state) == list(expected)
    assert all(torch.equal(state[key], expected[key]) for key in state)
    member.train()(noise(5, 6)).sum().backward()
    torch.optim.SGD(member.parameters(), lr=1.0).step()
    assert not torch.equal(member.output.bias, nets[2].output.bias)
    assert torch.equal(ensemble.rows, rows)
    assert torch.equal(ensemble.fixed["hidden.1.norm.running_mean"][2], nets[2].hidden[1].norm.running_mean)
    assert len(ensemble.members()) == ensemble.size == 3


@pytest.mark.parametrize("threads", [1, 3])
def test_networks_drawn_side_by_side_are_those_drawn_in_turn_bit_for_bit(threads: int) -> None:
    def draw(index: int) -> nn.Module:
        skip = Orthogonal()  # by QR, which counts on how many threads it has
        return ResidualNet(300, 64, 6, 3, generator=torch_generator(index), skip=skip, batch_norm_at=2)

    expected = Ensemble.of([draw(index) for index in range(7)])
    first, stack = drawn(draw, 7, torch.device("cpu"), threads)
    assert torch.equal(stack.rows, expected.rows)
    assert stack.fixed.keys() == expected.fixed.keys()
    assert all(torch.equal(stack.fixed[name], tensor) for name, tensor in expected.fixed.items())
    assert type(first) is type(expected.skeleton)
    with steady_arithmetic():
        one, other = (drawn(draw, 7, torch.device("cpu"), count)[1] for count in (1, threads))
    assert torch.equal(one.rows, other.rows)
    assert all(torch.equal(one.fixed[name], other.fixed[name]) for name in one.fixed)


def test_a_network_that_cannot_be_drawn_or_stacked_is_said_from_any_thread() -> None:
    def draw(index: int) -> nn.Module:
        return PlainNet(4, 4 + index // 5, 2, 3, generator=torch_generator(index))

    assert Ensemble.drawn(draw, 4).size == 4
    for threads in (1, 3):
        with pytest.raises(Refused, match="network 5 differs in kind or shape from network 0"):
            drawn(draw, 6, torch.device("cpu"), threads)
    with pytest.raises(Refused, match="size is 0"):
        Ensemble.drawn(draw, 0)


def test_stacking_leaves_the_modules_alone_and_members_carry_no_gradients() -> None:
    nets = [build("residual-bn", seed).train() for seed in range(2)]
    nets[0](noise(5, 6)).sum().backward()
    before = {key: value.clone() for key, value in nets[0].state_dict().items()}
    ensemble = Ensemble.of(nets)
    ensemble.rows.zero_()
    for tensor in ensemble.fixed.values():
        tensor.zero_()
    ensemble.train(False)
    assert all(torch.equal(before[key], value) for key, value in nets[0].state_dict().items())
    assert nets[0].training
    assert nets[0].output.bias.grad is not None
    for member in ensemble.members():
        assert not member.training
        assert all(parameter.grad is None for parameter in member.parameters())


def test_modes_are_those_of_a_module() -> None:
    _, ensemble = three("residual-bn", "batched")
    x = noise(5, 6)
    evaluated = ensemble(x)
    assert not torch.equal(ensemble.train()(x), evaluated)
    assert ensemble.skeleton.training


def test_the_default_backend_is_loop_for_convolutions_on_a_cpu_only() -> None:
    assert Ensemble.of([build("plain")]).backend == "batched"
    assert Ensemble.of([build("resnet")]).backend == "loop"
    assert Ensemble.of([build("resnet")], backend="batched").backend == "batched"


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", ["residual-bn", "residual-orthogonal", "resnet"])
def test_saved_members_come_back_bit_for_bit(name: str, size: int, tmp_path: Path) -> None:
    ensemble = Ensemble.of([build(name, seed) for seed in range(size)])
    ensemble.save(tmp_path / "members.safetensors")
    back = Ensemble.load(tmp_path / "members.safetensors", build(name, 9))
    assert back.size == size
    assert back.backend == ensemble.backend
    assert torch.equal(back.rows, ensemble.rows)
    assert set(back.fixed) == set(ensemble.fixed)
    for index in range(size):
        state, expected = back.member(index).state_dict(), ensemble.member(index).state_dict()
        assert all(torch.equal(state[key], expected[key]) for key in expected)


def test_frozen_and_tied_parameters_survive_saving(tmp_path: Path) -> None:
    net = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
    net[2].weight = net[0].weight
    net[0].bias.requires_grad_(False)
    Ensemble.of([net]).save(tmp_path / "net.safetensors")
    member = Ensemble.load(tmp_path / "net.safetensors", net).member(0)
    assert member[2].weight is member[0].weight
    assert torch.equal(member[0].bias, net[0].bias)
    assert not member[0].bias.requires_grad


@pytest.mark.parametrize(
    "like",
    [
        PlainNet(6, 8, 4, 3, generator=torch_generator(0)),
        PlainNet(6, 16, 5, 3, generator=torch_generator(0)),
    ],
    ids=["other names", "other shapes"],
)
def test_loading_another_architecture_is_refused(like: nn.Module, tmp_path: Path) -> None:
    path = tmp_path / "members.safetensors"
    Ensemble.of([build("plain")]).save(path)
    with pytest.raises(
        Refused, match=r"members\.safetensors holds another architecture than the PlainNet given; pass one"
    ):
        Ensemble.load(path, like)


def test_what_cannot_be_stacked_is_refused() -> None:
    net = nn.Linear(2, 2)
    with pytest.raises(Refused, match="an ensemble needs at least one network; pass a list"):
        Ensemble.of([])
    with pytest.raises(Refused, match=r"backend 'batch' is unknown; .* Did you mean batched\?"):
        Ensemble.of([net], backend="batch")
    with pytest.raises(Refused, match="the network has no trainable parameter; set requires_grad"):
        Ensemble.of([nn.ReLU()])
    with pytest.raises(Refused, match=r"the parameters mix torch\.float32 and torch\.float64; convert"):
        Ensemble.of([nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())])
    with pytest.raises(Refused, match="member 1 does not exist; there are 1"):
        Ensemble.of([net]).member(1)


@pytest.mark.parametrize(
    "other",
    [
        nn.Sequential(nn.Linear(2, 3), nn.ReLU()),
        nn.Sequential(nn.Linear(2, 2), nn.Tanh()),
        nn.Sequential(nn.Linear(2, 2), nn.ReLU()).double(),
        nn.Sequential(nn.Linear(2, 2), nn.ReLU()).requires_grad_(False),
        nn.ModuleList([nn.Linear(2, 2), nn.ReLU()]),
        nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True)),
    ],
    ids=["shape", "activation", "precision", "frozen", "class", "setting"],
)
def test_unlike_networks_are_refused(other: nn.Module) -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    with pytest.raises(Refused, match="network 1 differs in kind or shape from network 0; stack only like"):
        Ensemble.of([net, other])


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize("size", [1, 3])
def test_mapping_stacks_whatever_structure_is_returned(size: int, batched: bool) -> None:
    each, shared = noise(size, 4), noise(4)

    def function(own: dict[str, Tensor], common: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return own["x"] @ common, {"sum": own["x"] + common}

    product, rest = map_members(function, (0, None), ({"x": each}, shared), size, batched=batched)
    torch.testing.assert_close(product, each @ shared)
    torch.testing.assert_close(rest["sum"], each + shared)


@both
@pytest.mark.parametrize("name", ["residual-orthogonal", "residual-bn", "resnet"])
def test_selected_members_compute_what_they_did(name: str, backend: str) -> None:
    _, ensemble = three(name, backend)
    some = ensemble.selected([2, 0])
    images = any(parameter.ndim == 5 for parameter in ensemble.parameters.values())
    first = next(iter(ensemble.parameters.values()))
    x = noise(4, first.shape[2], 8, 8) if images else noise(4, first.shape[2])
    expected = ensemble(x)[[2, 0]]
    torch.testing.assert_close(some(x), expected)
    some.rows.zero_()
    torch.testing.assert_close(ensemble(x)[[2, 0]], expected)  # copies, not views
    torch.testing.assert_close(ensemble.selected([1], rows=2 * ensemble.rows).rows, 2 * ensemble.rows[1:2])
    single = ensemble.selected([1], dtype=torch.float32)
    assert single(x.float()).dtype == torch.float32
    assert next(ensemble.skeleton.parameters()).dtype == torch.float64


@pytest.mark.parametrize(
    "part", [nn.LSTM(3, 2), nn.GRU(3, 2), nn.MultiheadAttention(4, 2)], ids=lambda p: type(p).__name__
)
def test_what_torch_cannot_map_is_taken_in_turn(part: nn.Module) -> None:
    assert Ensemble.of([part, part]).backend == "loop"
    assert Ensemble.of([part, part], backend="batched").backend == "batched"
