"""The route by hand, operation by operation, against dense Hessians; what it leaves to others; its memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oracles.dense_hessian import dense_hessian
from skiplab.curvature.sweeps.forward_mode import ForwardMode
from skiplab.curvature.sweeps.recording import Tape, Unsupported
from skiplab.curvature.sweeps.workspace import Held, Workspace
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

CE = nn.CrossEntropyLoss()


def normal(*shape: int, seed: Any = 0) -> Tensor:
    return torch.randn(*shape, generator=torch_generator("forward", seed), dtype=torch.float64)


X, Y = normal(5, 4, seed="x"), torch.tensor([0, 2, 1, 1, 0])


class Net(nn.Module):
    """Two matrices, a row, and a buffer, put together by a function."""

    def __init__(self, forward: Callable[[Any, Tensor], Tensor], seed: int = 0) -> None:
        super().__init__()
        self.a, self.b = (
            nn.Parameter(normal(4, 4, seed=("a", seed))),
            nn.Parameter(normal(3, 4, seed=("b", seed))),
        )
        self.row = nn.Parameter(normal(4, seed=("row", seed)))
        self.register_buffer("fixed", normal(4, 4, seed=("fixed", seed)))
        self.body = forward

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(self.body(self, x), self.b)


def in_place(net: Any, x: Tensor) -> Tensor:
    y = F.linear(x, net.a).tanh()
    z = y.clone()
    z += net.row
    z.mul_(0.5)
    return F.relu(z, inplace=True) + y


def shapes(net: Any, x: Tensor) -> Tensor:
    y = F.linear(x, net.a).sigmoid()
    cube = y.view(5, 2, 2).transpose(1, 2).unsqueeze(1).expand(5, 3, 2, 2).permute(0, 2, 3, 1)
    return cube.mean(-1).flatten(1) + F.pad(y[:, 1:], (0, 1)) + torch.cat([y[..., :2], -y[:, 2:]], dim=-1)


FORWARDS: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "a weight used twice": lambda net, x: F.linear(F.linear(x, net.a, net.row).tanh(), net.a),
    "a weight from a weight": lambda net, x: F.linear(x, F.linear(net.a, net.a)).tanh(),
    "sums that broadcast": lambda net, x: (net.row + F.linear(x, net.a)).tanh() - net.row.sum(),
    "numbers": lambda net, x: 3 * (1 - F.linear(x, net.a).tanh()) / 2 + 0.5 - net.row * 2,
    "products": lambda net, x: F.linear(x, net.a).tanh() * F.linear(x, net.fixed) * net.row,
    "a product with itself": lambda net, x: (lambda y: y * y * y)(F.linear(x, net.a)),
    "in place": in_place,
    "shapes": shapes,
    "stacks": lambda net, x: (
        torch.stack([F.linear(x, net.a).tanh(), x, F.linear(x, net.fixed)]).sum(0) * net.row
    ),
    "a row spread": lambda net, x: F.linear(x, net.a).sum(-1, keepdim=True).tanh().expand_as(x) + net.row,
    "only biases": lambda net, x: F.linear(x, net.fixed, net.row).tanh(),
    "negative": lambda net, x: -(F.linear(x, net.a).tanh()) - F.dropout(net.row, 0.5, False),
    "depends on nothing": lambda net, x: x,
}


@pytest.mark.parametrize("name", FORWARDS)
def test_each_operation_has_its_dense_hessian(name: str) -> None:
    nets = [Net(FORWARDS[name], seed) for seed in range(2)]
    ensemble = Ensemble.of(nets, backend="batched")
    for criterion in (CE, lambda output, target: F.cross_entropy(output, target)):
        subject = Subject.of(ensemble, criterion=criterion)
        names = tuple(subject.parameters)
        members = ForwardMode(subject, (X, Y), names)
        vectors = normal(2, 32)
        together = members.product(vectors)
        for index, net in enumerate(nets):
            expected = dense_hessian(net, names, lambda model: CE(model(X), Y))
            torch.testing.assert_close(together[index], expected @ vectors[index], rtol=1e-11, atol=1e-11)
            loss = CE(net(X), Y)
            found = torch.autograd.grad(loss, [net.get_parameter(n) for n in names], allow_unused=True)
            gradient = torch.cat(
                [
                    torch.zeros(net.get_parameter(n).numel()) if g is None else g.reshape(-1)
                    for n, g in zip(names, found, strict=True)
                ]
            )
            torch.testing.assert_close(members.losses()[index], loss.detach(), rtol=1e-13, atol=0)
            torch.testing.assert_close(members.gradient()[index], gradient, rtol=1e-11, atol=1e-13)
            alone = ForwardMode(Subject.of(net, criterion=criterion), (X, Y), names)
            block = normal(5, 32, seed="block")
            torch.testing.assert_close(alone.product(block), block @ expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("chosen", [("a",), ("row",), ("b",), ("row", "a")])
def test_some_parameters_only(chosen: tuple[str, ...]) -> None:
    net = Net(FORWARDS["products"])
    expected = dense_hessian(net, chosen, lambda model: CE(model(X), Y))
    found = ForwardMode(Subject.of(net, criterion=CE), (X, Y), chosen)
    vectors = normal(3, len(expected))
    torch.testing.assert_close(found.product(vectors), vectors @ expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        ({"stride": 2, "padding": 1}, (2, 6, 5)),
        ({"dilation": 2, "bias": False}, (2, 7, 7)),
        ({"groups": 2, "padding": (1, 0)}, (2, 4, 5)),
    ],
)
def test_convolutions(settings: dict[str, Any], shape: tuple[int, ...]) -> None:
    class Conv(nn.Module):
        def __init__(self, seed: int) -> None:
            super().__init__()
            self.one = nn.Conv2d(2, 4, 3, dtype=torch.float64, **settings)
            self.two = nn.Conv2d(4, 3, 1, dtype=torch.float64)
            for number, parameter in enumerate(self.parameters()):
                parameter.data = normal(*parameter.shape, seed=(seed, number))

        def forward(self, x: Tensor) -> Tensor:
            return F.adaptive_avg_pool2d(self.two(torch.tanh(self.one(x))), 1).flatten(1)

    x, nets = normal(5, *shape), [Conv(0), Conv(1)]
    subject = Subject.of(Ensemble.of(nets, backend="batched"), criterion=CE)
    names = tuple(subject.parameters)
    route = ForwardMode(subject, (x, Y), names)
    count = sum(subject.parameters[name][0].numel() for name in names)
    vectors = normal(2, count)
    together = route.product(vectors)
    for index, net in enumerate(nets):
        expected = dense_hessian(net, names, lambda model: CE(model(x), Y))
        torch.testing.assert_close(together[index], expected @ vectors[index], rtol=1e-10, atol=1e-12)
        alone = ForwardMode(Subject.of(net, criterion=CE), (x, Y), names)
        torch.testing.assert_close(alone.product(vectors), vectors @ expected, rtol=1e-10, atol=1e-12)


def test_linear_layers_take_several_batch_axes() -> None:
    x = normal(5, 3, 4)
    net = Net(lambda net, x: F.linear(x, net.a, net.row).tanh().mean(1))
    names = ("a", "b", "row")
    expected = dense_hessian(net, names, lambda model: CE(model(x), Y))
    found = ForwardMode(Subject.of(net, criterion=CE), (x, Y), names).product(torch.eye(32).double())
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-12)


UNSUPPORTED: dict[str, Callable[[Any, Tensor], Tensor]] = {
    "detach": lambda net, x: F.linear(x, net.a).detach(),
    "softmax": lambda net, x: F.linear(x, net.a).softmax(-1),
    "division by a tensor": lambda net, x: F.linear(x, net.a) / net.row,
    "indexing by a tensor": lambda net, x: F.linear(x, net.a)[:, torch.arange(4)],
    "dropout in training mode": lambda net, x: F.dropout(F.linear(x, net.a)),
    "batch's statistics": lambda net, x: F.batch_norm(F.linear(x, net.a), None, None, training=True),
    "pad that is not linear": lambda net, x: F.pad(F.linear(x, net.a)[:, 1:], (0, 1), value=2.0),
    "^add$": lambda net, x: torch.add(x, net.row, alpha=2),
    "__get__": lambda net, x: F.linear(x, net.a.T),
    "chunk": lambda net, x: F.linear(x, net.a).chunk(2, -1)[0].repeat(1, 2),
}


@pytest.mark.parametrize("says", UNSUPPORTED)
def test_what_has_no_rule_is_left_to_others(says: str) -> None:
    with pytest.raises(Unsupported, match=says):
        Tape.of(Subject.of(Net(UNSUPPORTED[says]), criterion=CE), (X, Y))


def test_a_loss_of_ones_own_is_left_to_others() -> None:
    subject = Subject.of(Net(FORWARDS["products"]), loss_fn=lambda model, batch: model(batch[0]).sum())
    with pytest.raises(Unsupported, match="loss function of one's own"):
        ForwardMode(subject, (X, Y), ("a",))


def test_forgotten_values_are_computed_again() -> None:
    route = ForwardMode(Subject.of(Net(FORWARDS["products"]), criterion=CE), (X, Y), ("a", "b"))
    vectors = normal(2, 28)
    before, size = route.product(vectors), route.nbytes()
    assert size > 0
    route.forget()
    assert torch.equal(route.product(vectors), before)
    assert route._state is None


# Memory ----------------------------------------------------------------------------------------------------


def test_memory_comes_back_when_the_last_holder_lets_go() -> None:
    space = Workspace()
    one = space.add(torch.ones(2, 3), torch.ones(2, 3))
    place = one.data_ptr()
    space.hold(one)
    space.hold(one.view(6))
    space.drop(one)
    assert space.mul(torch.ones(2, 3), 2.0).data_ptr() != place
    space.drop(one.view(6))
    again = space.mul(torch.full((3, 2), 3.0), 2.0)
    assert again.data_ptr() == place
    assert again.tolist() == [[6.0, 6.0]] * 3


def test_memory_of_others_is_never_taken() -> None:
    space, mine = Workspace(), torch.ones(2, 3)
    space.hold(mine)
    space.drop(mine)
    space.reset()
    assert space.add(mine, mine).data_ptr() != mine.data_ptr()


def test_reset_takes_everything_back() -> None:
    space = Workspace()
    places = {space.bmm(torch.ones(1, 2, 2), torch.ones(1, 2, 2)).data_ptr() for _ in range(3)}
    assert len(places) == 3
    space.reset()
    assert {space.bmm(torch.ones(1, 2, 2), torch.ones(1, 2, 2)).data_ptr() for _ in range(3)} == places


def test_without_reuse_results_are_ordinary() -> None:
    space = Workspace(reuse=False)
    one = space.add(torch.ones(2), torch.ones(2), -3.0)
    space.reset()
    space.mul(torch.ones(2), torch.zeros(2))
    assert one.tolist() == [-2.0, -2.0]


def test_a_slot_holds_what_is_in_it() -> None:
    space = Workspace()
    slots = Held(space)
    slots[0] = first = space.mul(torch.ones(4), 2.0)
    slots[1] = first
    slots[0] = space.mul(torch.ones(4), 3.0)
    assert space.mul(torch.ones(4), 4.0).data_ptr() != first.data_ptr()
    slots.discard(1)
    slots.discard(7)
    assert space.mul(torch.ones(4), 5.0).data_ptr() == first.data_ptr()


def test_products_do_not_grow_the_memory() -> None:
    space = Workspace()
    route = ForwardMode(
        Subject.of(Net(FORWARDS["products"]), criterion=CE), (X, Y), ("a", "b", "row"), space=space
    )
    route.product(normal(3, 32))
    buffers = sum(map(len, space._free.values()))
    for _ in range(3):
        route.product(normal(3, 32))
    assert sum(map(len, space._free.values())) == buffers > 0
    assert not space._taken
