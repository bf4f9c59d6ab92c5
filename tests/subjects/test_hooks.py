"""Visitors see what parts take and give, may change it, and are gone afterwards, whatever happened."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn

import skiplab
from skiplab.checks import Refused
from skiplab.randomness import torch_generator
from skiplab.subjects.hooks import first_argument, visited, with_first_tensor


def _net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def _hooks(net: nn.Module) -> list[int]:
    return [len(part._forward_hooks) + len(part._forward_pre_hooks) for part in net.modules()]


X = torch.randn(4, 2, generator=torch_generator(0, "inputs"))


def test_what_parts_take_and_give_is_seen() -> None:
    net, taken, given = _net(), [], []
    before = [(net[1], lambda _, args, kwargs: taken.append(first_argument(args, kwargs)))]
    after = [(part, lambda _, args, kwargs, output: given.append(output)) for part in net]
    with visited(before=before, after=after):
        y = net(X)
    assert [tuple(x.shape) for x in given] == [(4, 3), (4, 3), (4, 1)]
    assert taken[0] is given[0]
    assert given[2] is y
    assert not any(_hooks(net))


def test_what_a_visitor_returns_takes_the_place_of_the_output() -> None:
    net = _net()
    with visited(after=[(net[2], lambda _, args, kwargs, output: output + 1)]):
        changed = net(X)
    torch.testing.assert_close(changed, net(X) + 1)


def test_hooks_of_the_users_own_stay() -> None:
    net = _net()
    own = net[0].register_forward_hook(lambda *_: None)
    with visited(after=[(net[0], lambda *_: None)]):
        assert _hooks(net) == [0, 2, 0, 0]
    assert _hooks(net) == [0, 1, 0, 0]
    own.remove()


@pytest.mark.parametrize("stage", ["network", "visitor", "registration"])
def test_nothing_is_left_after_a_failure(stage: str) -> None:
    net = _net()

    def fail(*_: Any) -> None:
        raise RuntimeError("a fault")

    after: list[tuple[Any, Any]] = [(net[0], fail if stage == "visitor" else lambda *_: None)]
    if stage == "registration":
        after.append((None, fail))
    with pytest.raises((RuntimeError, AttributeError)), visited(before=[(net, lambda *_: None)], after=after):
        net(X if stage == "visitor" else X[:, :1])
    assert not any(_hooks(net))


def test_the_first_argument_may_be_a_keyword() -> None:
    assert first_argument((None, X), {}) is X
    assert first_argument((1,), {"mask": None, "x": X}) is X


class _Pair(NamedTuple):
    x: Tensor
    y: int


def test_the_first_tensor_of_an_output_is_changed() -> None:
    def doubled(x: Tensor) -> Tensor:
        return 2 * x

    assert torch.equal(with_first_tensor("a", X, doubled), 2 * X)
    x, rest = with_first_tensor("a", (X, "rest"), doubled)
    assert torch.equal(x, 2 * X)
    assert rest == "rest"
    pair = with_first_tensor("a", _Pair(X, 1), doubled)
    assert isinstance(pair, _Pair)
    assert torch.equal(pair.x, 2 * X)
    with pytest.raises(Refused, match="layer 'a' returns a dict, not a tensor; choose another layer"):
        with_first_tensor("a", {"x": X}, doubled)


def test_hooks_are_registered_in_one_place() -> None:
    sources = Path(skiplab.__file__).parent
    found = {
        str(path.relative_to(sources))
        for path in sources.rglob("*.py")
        if re.search(r"\bregister_\w*hook\b|\.register_hook\b", path.read_text(encoding="utf-8"))
    }
    assert found == {"subjects/hooks.py"}, "register hooks with skiplab.subjects.hooks.visited"


def test_a_part_that_takes_no_tensor_is_refused() -> None:
    with pytest.raises(
        Refused, match="a layer is called with list, not with a tensor; choose layers that take one"
    ):
        first_argument(([torch.zeros(1)],), {})
